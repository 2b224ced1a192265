using System;
using System.Collections.Generic;
using System.Text;
using System.Threading.Tasks;
using Microsoft.Data.Sqlite;
using StackExchange.Redis;

namespace RestService;

/// <summary>The original's design: a connection to SQLite for each request (in a shared cache), with its settings
/// and a command made for it; a commit per write; strings from and to Redis.</summary>
internal sealed class NaiveUsers : IUsers, IDisposable
{
    private readonly Statements _statements;
    private readonly string _connectionString;
    private readonly ConnectionMultiplexer _redis;
    private readonly IDatabase _database;

    public NaiveUsers(Settings settings, Statements statements)
    {
        _statements = statements;
        _connectionString = "Data Source=" + settings.Database + ";Cache=Shared;Mode=ReadWrite";
        ConfigurationOptions options = new() { AbortOnConnectFail = false };
        options.EndPoints.Add(settings.RedisHost, settings.RedisPort);
        _redis = ConnectionMultiplexer.Connect(options);
        _database = _redis.GetDatabase();
    }

    public async ValueTask<Reply> Get(long id)
    {
        string? cached = await _database.StringGetAsync("user:" + id);
        if (cached != null)
            return new Reply(200, Encoding.UTF8.GetBytes(cached));
        return await Query("user-by-id", command => command.Parameters.AddWithValue("?1", id), async row =>
        {
            if (!await row.ReadAsync())
                return Reply.UserNotFound;
            string json = Encoding.UTF8.GetString(Json.Write(Rows.ReadUser(row)).Span);
            await _database.StringSetAsync("user:" + id, json, TimeSpan.FromSeconds(60));
            return new Reply(200, Encoding.UTF8.GetBytes(json));
        });
    }

    public ValueTask<Reply> List(long page, long limit) => Query(
        "users-page",
        command =>
        {
            command.Parameters.AddWithValue("?1", limit);
            command.Parameters.AddWithValue("?2", (page - 1) * limit);
        },
        async row =>
        {
            List<User> users = new();
            while (await row.ReadAsync())
                users.Add(Rows.ReadUser(row));
            return new Reply(200, Json.Write(new UserPage(page, limit, users)).ToArray());
        });

    public ValueTask<Reply> Add(UserInput input) => Query("insert-user", command => Bind(command, 1, input), async row =>
    {
        User? user = await Changed(row);
        return user == null ? Reply.UserNotFound : new Reply(201, Json.Write(user).ToArray(), "/users/" + user.Id);
    });

    public ValueTask<Reply> Change(long id, UserInput input) => Query(
        "update-user",
        command =>
        {
            command.Parameters.AddWithValue("?1", id);
            Bind(command, 2, input);
        },
        async row =>
        {
            User? user = await Changed(row);
            return user == null ? Reply.UserNotFound : new Reply(200, Json.Write(user).ToArray());
        });

    public ValueTask<Reply> Delete(long id) => Query("delete-user", command => command.Parameters.AddWithValue("?1", id), async row =>
    {
        if (!await row.ReadAsync())
            return Reply.UserNotFound;
        await row.DisposeAsync();
        await _database.KeyDeleteAsync("user:" + id);
        return Reply.UserDeleted;
    });

    private async Task<User?> Changed(SqliteDataReader row)
    {
        if (!await row.ReadAsync())
            return null;
        User user = Rows.ReadUser(row);
        // Ends the statement, and commits.
        await row.DisposeAsync();
        await _database.KeyDeleteAsync("user:" + user.Id);
        return user;
    }

    private async ValueTask<Reply> Query(string name, Action<SqliteCommand> bind, Func<SqliteDataReader, Task<Reply>> action)
    {
        string part = "open";
        try
        {
            using SqliteConnection connection = new(_connectionString);
            await connection.OpenAsync();
            part = "settings";
            Rows.Run(connection, _statements["naive-settings"]);
            part = "statement";
            using SqliteCommand command = connection.CreateCommand();
            command.CommandText = _statements[name];
            bind(command);
            using SqliteDataReader row = await command.ExecuteReaderAsync();
            return await action(row);
        }
        catch (SqliteException problem) when (Rows.IsUniqueViolation(problem))
        {
            return Reply.DuplicateEmail;
        }
        catch (SqliteException problem)
        {
            // A line that the measurement counts.
            Console.Error.WriteLine("unavailable: SQLite " + problem.SqliteExtendedErrorCode + " in " + part + ": " + problem.Message);
            return Reply.DatabaseUnavailable;
        }
    }

    private static void Bind(SqliteCommand command, int index, UserInput input)
    {
        command.Parameters.AddWithValue("?" + index, input.Name);
        command.Parameters.AddWithValue("?" + (index + 1), input.Email);
        command.Parameters.AddWithValue("?" + (index + 2), (object?)input.Bio ?? DBNull.Value);
    }

    public void Dispose() => _redis.Dispose();
}
