// StackExchange.Redis as a peer: reads the flags of compare/PROTOCOL.md or of
// `redis-client bench`, runs the load, prints one JSON object. Everything about the load itself is in Load.cs,
// about what it counts in Tally.cs, about the stream of operations in Workload.cs.

using System.Globalization;
using System.Reflection;
using System.Text;
using StackExchange.Redis;

namespace RedisClientCompare;

internal static class Program
{
    private static int Main(string[] arguments)
    {
        if (arguments is ["--version"])
        {
            Console.WriteLine(LibraryVersion());
            return 0;
        }

        try
        {
            var options = Options.Parse(arguments);
            var notes = RecommendedSettings();
            var report = Load.Run(options);
            var json = ToJson(options, report, notes);
            if (options.Json == "-")
            {
                Console.WriteLine(json);
            }
            else
            {
                File.WriteAllText(options.Json, json + "\n");
            }

            return 0;
        }
        catch (Exception problem)
        {
            Console.Error.WriteLine(problem.Message.ReplaceLineEndings(" "));
            return 2;
        }
    }

    // What its own documentation recommends (Timeouts, Configuration). For 1.x:
    // 200 to 300 threads at least in the pool. Later versions need no such thing.
    private static List<string> RecommendedSettings()
    {
        var notes = new List<string>
        {
            System.Runtime.GCSettings.IsServerGC ? "server GC" : "workstation GC",
        };
        foreach (var name in new[] { "DOTNET_TieredCompilation", "DOTNET_ReadyToRun", "DOTNET_TC_CallCountingDelayMs" })
        {
            if (Environment.GetEnvironmentVariable(name) is { } value)
            {
                notes.Add($"{name}={value}");
            }
        }

#if SE_REDIS_1
        ThreadPool.SetMinThreads(200, 200);
        notes.Add("at least 200 pool threads");
#endif
#if SE_REDIS_2
        notes.Add(Connections.OwnThreads ? "SocketManager.Shared" : "SocketManager.ThreadPool");
#endif
        return notes;
    }

    private static string LibraryVersion()
    {
        var assembly = typeof(ConnectionMultiplexer).Assembly;
        var version = assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion
            ?? assembly.GetName().Version?.ToString()
            ?? "unknown";
        return version.Split('+')[0];
    }

    private static string ToJson(Options options, Report report, List<string> notes)
    {
        var json = new StringBuilder();
        var latencies = report.Latencies;
        void Field(string name, FormattableString value) =>
            json.Append(json.Length == 0 ? "{" : ", ").Append('"').Append(name).Append("\": ")
                .Append(value.ToString(CultureInfo.InvariantCulture));

        Field("schema", $"\"redis-client-compare-peer/1\"");
        Field("client", $"\"StackExchange.Redis\"");
        Field("version", $"\"{LibraryVersion()}\"");
        Field("runtime", $"\".NET {Environment.Version}\"");
        Field("operation", $"\"{options.OperationName}\"");
        Field("ops_per_sec", $"{report.TotalOps / report.Seconds:F1}");
        Field("duration_sec", $"{report.Seconds:F6}");
        Field("total_ops", $"{report.TotalOps}");
        Field("hits", $"{report.Hits}");
        Field("misses", $"{report.Misses}");
        Field("wrong", $"{report.Wrong}");
        Field("errors", $"{report.Errors}");
        Field("latency", $"{{\"p50\": {latencies.Percentile(50)}, \"p90\": {latencies.Percentile(90)}, \"p95\": {latencies.Percentile(95)}, \"p99\": {latencies.Percentile(99)}, \"p99_9\": {latencies.Percentile(99.9)}, \"max\": {latencies.Max}}}");
        Field("cpu_ns", $"{report.CpuNanos}");
        Field("all_get", $"{report.AllGet}");
        Field("all_set", $"{report.AllSet}");
        Field("connections", $"{report.Connections}");
        Field("stream_check", $"\"0x{report.StreamCheck:x}\"");
        // What the runtime counts may stand still for a short window, or go back
        // when a thread ends: then it does not tell.
        if (report.AllocatedBytes > 0 && report.TotalOps > 0)
        {
            Field("alloc_bytes_per_op", $"{report.AllocatedBytes / (double)report.TotalOps:F1}");
        }

        Field("notes", $"[{string.Join(", ", notes.Select(note => $"\"{note}\""))}]");
        return json.Append('}').ToString();
    }
}
