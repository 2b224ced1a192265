using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;
using Microsoft.Data.Sqlite;

namespace RestService;

internal enum OutcomeKind { Saved, Deleted, Missing, Duplicate, Unavailable }

internal readonly record struct Outcome(OutcomeKind Kind, User? User = null);

internal enum ChangeKind { Insert, Update, Delete }

internal readonly record struct Change(ChangeKind Kind, long Id, UserInput? Input);

internal static class Rows
{
    public static User ReadUser(SqliteDataReader row) => new(
        row.GetInt64(0),
        row.GetString(1),
        row.GetString(2),
        row.IsDBNull(3) ? null : row.GetString(3),
        row.GetString(4));

    public static void Run(SqliteConnection connection, string sql)
    {
        using SqliteCommand command = connection.CreateCommand();
        command.CommandText = sql;
        command.ExecuteNonQuery();
    }

    public static SqliteCommand Prepare(SqliteConnection connection, string sql, params ReadOnlySpan<SqliteType> parameters)
    {
        SqliteCommand command = connection.CreateCommand();
        command.CommandText = sql;
        for (int index = 0; index < parameters.Length; index++)
            command.Parameters.Add("?" + (index + 1), parameters[index]);
        command.Prepare();
        return command;
    }

    public static bool IsBusy(SqliteException problem) => problem.SqliteErrorCode is 5 or 6;

    public static bool IsUniqueViolation(SqliteException problem) => problem.SqliteExtendedErrorCode == 2067;
}

/// <summary>Pooled connections for reading, their statements prepared once. Calls are synchronous: SQLite has
/// no others, and a read takes microseconds.</summary>
internal sealed class Readers : IDisposable
{
    private sealed record Reader(SqliteConnection Connection, SqliteCommand ById, SqliteCommand Page);

    private readonly ConcurrentBag<Reader> _free = new();
    private readonly Statements _statements;
    private readonly string _database;

    public Readers(Statements statements, string database)
    {
        _statements = statements;
        _database = database;
        _free.Add(Open());
    }

    private Reader Open()
    {
        SqliteConnection connection = new(new SqliteConnectionStringBuilder
        {
            DataSource = _database,
            Mode = SqliteOpenMode.ReadOnly,
            Cache = SqliteCacheMode.Private,
            Pooling = false,
            DefaultTimeout = 5,
        }.ToString());
        connection.Open();
        Rows.Run(connection, _statements["reader-settings"]);
        return new Reader(
            connection,
            Rows.Prepare(connection, _statements["user-by-id"], SqliteType.Integer),
            Rows.Prepare(connection, _statements["users-page"], SqliteType.Integer, SqliteType.Integer));
    }

    public User? Find(long id)
    {
        if (!_free.TryTake(out Reader? reader))
            reader = Open();
        try
        {
            reader.ById.Parameters[0].Value = id;
            using SqliteDataReader row = reader.ById.ExecuteReader();
            return row.Read() ? Rows.ReadUser(row) : null;
        }
        finally
        {
            _free.Add(reader);
        }
    }

    public List<User> List(long page, long limit)
    {
        if (!_free.TryTake(out Reader? reader))
            reader = Open();
        try
        {
            reader.Page.Parameters[0].Value = limit;
            reader.Page.Parameters[1].Value = (page - 1) * limit;
            using SqliteDataReader row = reader.Page.ExecuteReader();
            List<User> users = new((int)limit);
            while (row.Read())
                users.Add(Rows.ReadUser(row));
            return users;
        }
        finally
        {
            _free.Add(reader);
        }
    }

    public void Dispose()
    {
        while (_free.TryTake(out Reader? reader))
        {
            reader.ById.Dispose();
            reader.Page.Dispose();
            reader.Connection.Dispose();
        }
    }
}

/// <summary>The one writer, which commits groups: a thread takes all that waits, gives each change a savepoint,
/// commits, and only then answers.</summary>
internal sealed class Writer : IDisposable
{
    private const int LargestGroup = 1024;

    private sealed class Job(Change change) : TaskCompletionSource<Outcome>(TaskCreationOptions.RunContinuationsAsynchronously)
    {
        public Change Change { get; } = change;
    }

    private readonly Channel<Job> _queue = Channel.CreateUnbounded<Job>(new UnboundedChannelOptions { SingleReader = true });
    private readonly SqliteConnection _connection;
    private readonly SqliteCommand _begin, _commit, _rollback, _savepoint, _release, _rollbackTo, _insert, _update, _delete;
    private readonly Thread _thread;

    public Writer(Statements statements, string database)
    {
        _connection = new SqliteConnection(new SqliteConnectionStringBuilder
        {
            DataSource = database,
            Mode = SqliteOpenMode.ReadWrite,
            Cache = SqliteCacheMode.Private,
            Pooling = false,
            // SQLite itself waits by its busy_timeout; this only bounds the library's own repetitions.
            DefaultTimeout = 5,
        }.ToString());
        _connection.Open();
        Rows.Run(_connection, statements["writer-settings"]);
        _begin = Rows.Prepare(_connection, statements["begin"]);
        _commit = Rows.Prepare(_connection, statements["commit"]);
        _rollback = Rows.Prepare(_connection, statements["rollback"]);
        _savepoint = Rows.Prepare(_connection, statements["savepoint"]);
        _release = Rows.Prepare(_connection, statements["release"]);
        _rollbackTo = Rows.Prepare(_connection, statements["rollback-to"]);
        _insert = Rows.Prepare(_connection, statements["insert-user"], SqliteType.Text, SqliteType.Text, SqliteType.Text);
        _update = Rows.Prepare(_connection, statements["update-user"], SqliteType.Integer, SqliteType.Text, SqliteType.Text, SqliteType.Text);
        _delete = Rows.Prepare(_connection, statements["delete-user"], SqliteType.Integer);
        _thread = new Thread(Serve) { Name = "writer" };
        _thread.Start();
    }

    public Task<Outcome> Write(Change change)
    {
        Job job = new(change);
        return _queue.Writer.TryWrite(job) ? job.Task : Task.FromResult(new Outcome(OutcomeKind.Unavailable));
    }

    private void Serve()
    {
        List<Job> group = new();
        List<Outcome> outcomes = new();
        while (_queue.Reader.WaitToReadAsync().AsTask().GetAwaiter().GetResult())
        {
            group.Clear();
            outcomes.Clear();
            while (group.Count < LargestGroup && _queue.Reader.TryRead(out Job? job))
                group.Add(job);
            try
            {
                CommitGroup(group, outcomes);
            }
            catch (SqliteException)
            {
                outcomes.Clear();
            }
            for (int index = 0; index < group.Count; index++)
                group[index].SetResult(index < outcomes.Count ? outcomes[index] : new Outcome(OutcomeKind.Unavailable));
        }
    }

    private void CommitGroup(List<Job> group, List<Outcome> outcomes)
    {
        _begin.ExecuteNonQuery();
        try
        {
            foreach (Job job in group)
                outcomes.Add(Run(job.Change));
            _commit.ExecuteNonQuery();
        }
        catch
        {
            try
            {
                _rollback.ExecuteNonQuery();
            }
            catch (SqliteException)
            {
                // SQLite has rolled back by itself.
            }
            throw;
        }
    }

    private Outcome Run(Change change)
    {
        _savepoint.ExecuteNonQuery();
        Outcome outcome;
        try
        {
            outcome = Apply(change);
        }
        catch (SqliteException problem) when (Rows.IsUniqueViolation(problem))
        {
            _rollbackTo.ExecuteNonQuery();
            outcome = new Outcome(OutcomeKind.Duplicate);
        }
        _release.ExecuteNonQuery();
        return outcome;
    }

    private Outcome Apply(Change change)
    {
        switch (change.Kind)
        {
            case ChangeKind.Insert:
                Bind(_insert, 0, change.Input!);
                return Saved(_insert);
            case ChangeKind.Update:
                _update.Parameters[0].Value = change.Id;
                Bind(_update, 1, change.Input!);
                return Saved(_update);
            default:
                _delete.Parameters[0].Value = change.Id;
                using (SqliteDataReader row = _delete.ExecuteReader())
                    return new Outcome(row.Read() ? OutcomeKind.Deleted : OutcomeKind.Missing);
        }
    }

    private static Outcome Saved(SqliteCommand command)
    {
        using SqliteDataReader row = command.ExecuteReader();
        return row.Read() ? new Outcome(OutcomeKind.Saved, Rows.ReadUser(row)) : new Outcome(OutcomeKind.Missing);
    }

    private static void Bind(SqliteCommand command, int index, UserInput input)
    {
        command.Parameters[index].Value = input.Name;
        command.Parameters[index + 1].Value = input.Email;
        command.Parameters[index + 2].Value = (object?)input.Bio ?? DBNull.Value;
    }

    /// <summary>Ends after what waits has been committed.</summary>
    public void Dispose()
    {
        _queue.Writer.TryComplete();
        _thread.Join();
        _connection.Dispose();
    }
}
