using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Microsoft.Data.Sqlite;

namespace RestService;

/// <summary>An answer before HTTP: status, the body or what it will be made of, and the Location of what was
/// made.</summary>
internal readonly record struct Reply(int Status, byte[]? Body, string? Location = null, User? User = null, UserPage? Page = null)
{
    public static readonly Reply UserNotFound = new(404, "{\"error\":\"User not found\"}"u8.ToArray());
    public static readonly Reply UserDeleted = new(200, "{\"message\":\"User deleted\"}"u8.ToArray());
    public static readonly Reply NotFound = new(404, "{\"error\":\"Not found\"}"u8.ToArray());
    public static readonly Reply MethodNotAllowed = new(405, "{\"error\":\"Method not allowed\"}"u8.ToArray());
    public static readonly Reply InvalidId = new(400, "{\"error\":\"Invalid id\"}"u8.ToArray());
    public static readonly Reply InvalidPage = new(400, "{\"error\":\"Invalid page or limit\"}"u8.ToArray());
    public static readonly Reply InvalidUser = new(400, "{\"error\":\"Invalid user\"}"u8.ToArray());
    public static readonly Reply BodyTooLarge = new(413, "{\"error\":\"Body too large\"}"u8.ToArray());
    public static readonly Reply DuplicateEmail = new(409, "{\"error\":\"Email already exists\"}"u8.ToArray());
    public static readonly Reply DatabaseUnavailable = new(503, "{\"error\":\"Database unavailable\"}"u8.ToArray());
}

/// <summary>The operations on users.</summary>
internal interface IUsers
{
    ValueTask<Reply> Get(long id);

    ValueTask<Reply> List(long page, long limit);

    ValueTask<Reply> Add(UserInput input);

    ValueTask<Reply> Change(long id, UserInput input);

    ValueTask<Reply> Delete(long id);
}

/// <summary>By pooled readers, one writer and the cache.</summary>
internal sealed class TunedUsers(Cache cache, Readers readers, Writer writer) : IUsers
{
    public async ValueTask<Reply> Get(long id)
    {
        string? word = null;
        if (cache.Trusts(id))
        {
            try
            {
                byte[]? bytes = await cache.Read(id).ConfigureAwait(false);
                if (bytes != null)
                    return new Reply(200, bytes);
                word = await cache.Reserve(id).ConfigureAwait(false);
            }
            catch (Exception problem) when (Cache.IsTrouble(problem))
            {
            }
        }
        try
        {
            User? user = readers.Find(id);
            if (user == null)
                return Reply.UserNotFound;
            if (word == null)
                return new Reply(200, null, User: user);
            byte[] body = Json.Write(user).ToArray();
            cache.Store(id, word, body);
            return new Reply(200, body);
        }
        catch (SqliteException problem) when (Rows.IsBusy(problem))
        {
            return Reply.DatabaseUnavailable;
        }
    }

    public ValueTask<Reply> List(long page, long limit)
    {
        try
        {
            return new(new Reply(200, null, Page: new UserPage(page, limit, readers.List(page, limit))));
        }
        catch (SqliteException problem) when (Rows.IsBusy(problem))
        {
            return new(Reply.DatabaseUnavailable);
        }
    }

    public ValueTask<Reply> Add(UserInput input) => Write(new Change(ChangeKind.Insert, 0, input));

    public ValueTask<Reply> Change(long id, UserInput input) => Write(new Change(ChangeKind.Update, id, input));

    public ValueTask<Reply> Delete(long id) => Write(new Change(ChangeKind.Delete, id, null));

    private async ValueTask<Reply> Write(Change change)
    {
        Outcome outcome = await writer.Write(change).ConfigureAwait(false);
        switch (outcome.Kind)
        {
            case OutcomeKind.Saved:
                User user = outcome.User!;
                await cache.Invalidate(user.Id).ConfigureAwait(false);
                return change.Kind == ChangeKind.Insert
                    ? new Reply(201, null, "/users/" + user.Id, user)
                    : new Reply(200, null, User: user);
            case OutcomeKind.Deleted:
                await cache.Invalidate(change.Id).ConfigureAwait(false);
                return Reply.UserDeleted;
            case OutcomeKind.Missing:
                return Reply.UserNotFound;
            case OutcomeKind.Duplicate:
                return Reply.DuplicateEmail;
            default:
                return Reply.DatabaseUnavailable;
        }
    }
}
