using System;
using System.Collections.Generic;
using System.IO;

namespace RestService;

/// <summary>The SQL that both services share, by name.</summary>
internal sealed class Statements
{
    private readonly Dictionary<string, string> _blocks = new();

    public Statements(string path)
    {
        string name = "";
        foreach (string line in File.ReadLines(path))
        {
            if (line.StartsWith("-- name: ", StringComparison.Ordinal))
                name = line["-- name: ".Length..];
            else if (!line.StartsWith("--", StringComparison.Ordinal))
                _blocks[name] = _blocks.GetValueOrDefault(name, "") + line + "\n";
        }
    }

    public string this[string name] =>
        _blocks.TryGetValue(name, out string? sql) ? sql : throw new InvalidOperationException("no SQL is named " + name);
}
