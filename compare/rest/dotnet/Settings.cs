using System;

namespace RestService;

/// <summary>The settings of the service: see the table in the contract.</summary>
internal sealed record Settings(
    int Port,
    string Database,
    string SqlFile,
    string RedisHost,
    int RedisPort,
    bool Cluster,
    bool Naive,
    int ClientTimeout,
    bool SystemSqlite)
{
    public static Settings FromEnvironment() => new(
        Port: Number("PORT", 5000),
        Database: Text("SQLITE_DB", null),
        SqlFile: Text("SQL_FILE", "compare/rest/shared/statements.sql"),
        RedisHost: Text("REDIS_HOST", "127.0.0.1"),
        RedisPort: Number("REDIS_PORT", 6379),
        Cluster: Choice("REDIS_CLUSTER", "false", "true"),
        Naive: Choice("MODE", "tuned", "naive"),
        ClientTimeout: Number("CLIENT_TIMEOUT", 30),
        SystemSqlite: Choice("SQLITE_LIBRARY", "system", "bundled") == false);

    private static string Text(string name, string? absent) =>
        Environment.GetEnvironmentVariable(name) ?? absent ?? throw new InvalidOperationException(name + " is not set");

    private static int Number(string name, int absent)
    {
        string? text = Environment.GetEnvironmentVariable(name);
        if (text == null)
            return absent;
        return int.TryParse(text, out int value) ? value : throw new InvalidOperationException(name + " is not a number: " + text);
    }

    // Whether it is the second of two words; the first where nothing is set.
    private static bool Choice(string name, string first, string second)
    {
        string text = Text(name, first);
        if (text != first && text != second)
            throw new InvalidOperationException(name + " must be " + first + " or " + second);
        return text == second;
    }
}
