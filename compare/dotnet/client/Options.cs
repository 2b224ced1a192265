// The flags of compare/PROTOCOL.md, and those of `redis-client bench` where that
// has others for the same: one command line for both.

using System.Globalization;

namespace RedisClientCompare;

internal enum Operation
{
    Get,
    Set,
    Mixed,
}

internal sealed record Options
{
    public string Host { get; init; } = "127.0.0.1";
    public int Port { get; init; } = 6379;
    public string? Password { get; init; }
    public bool Tls { get; init; }
    public bool Cluster { get; init; }
    public Operation Operation { get; init; } = Operation.Get;
    public bool Misses { get; init; }
    public int InFlight { get; init; } = 16;

    // 1: each caller waits for each reply.
    public int Batch { get; init; } = 1;
    public int Keys { get; init; } = 100000;
    public int KeySize { get; init; } = 16;
    public int ValueSize { get; init; } = 512;
    public double Warmup { get; init; } = 1;
    public double Duration { get; init; } = 5;
    public ulong Seed { get; init; } = 1;
    public int Connections { get; init; } = 1;

    // A file, or - for standard output.
    public string Json { get; init; } = "-";

    public int Callers => InFlight / Batch;

    public string OperationName => Operation.ToString().ToLowerInvariant();

    public static Options Parse(string[] arguments)
    {
        var options = new Options();
        bool? batches = null;
        int? inFlight = null;
        int? threads = null;
        var batch = 64;
        for (var place = 0; place < arguments.Length; place++)
        {
            var flag = arguments[place];
            string Value() => ++place < arguments.Length
                ? arguments[place]
                : throw new ArgumentException($"{flag} needs a value");
            int Count() => int.Parse(Value(), CultureInfo.InvariantCulture);
            double Seconds() => double.Parse(Value(), CultureInfo.InvariantCulture);
            switch (flag)
            {
                case "--host" or "-h": options = options with { Host = Value() }; break;
                case "--port" or "-p": options = options with { Port = Count() }; break;
                case "--password" or "-a": options = options with { Password = Value() }; break;
                case "--tls" or "-t": options = options with { Tls = true }; break;
                case "--cluster" or "-c": options = options with { Cluster = true }; break;
                case "--operation":
                    options = options with { Operation = Enum.Parse<Operation>(Value(), ignoreCase: true) };
                    break;
                case "--misses": options = options with { Misses = true }; break;
                case "--in-flight": inFlight = Count(); break;
                case "--threads" or "-n": threads = Count(); break;
                case "--style":
                    batches = Value() switch
                    {
                        "wait" => false,
                        "batch" => true,
                        var other => throw new ArgumentException($"--style {other}: wait or batch"),
                    };
                    break;
                case "--batch": batch = Count(); break;
                case "--keys": options = options with { Keys = Count() }; break;
                case "--key-size": options = options with { KeySize = Count() }; break;
                case "--value-size" or "-d": options = options with { ValueSize = Count() }; break;
                case "--warmup": options = options with { Warmup = Seconds() }; break;
                case "--duration": options = options with { Duration = Seconds() }; break;
                case "--seed": options = options with { Seed = ulong.Parse(Value(), CultureInfo.InvariantCulture) }; break;
                case "--connections" or "--mux-count": options = options with { Connections = Count() }; break;
                case "--json": options = options with { Json = Value() }; break;
                default: throw new ArgumentException($"unknown flag {flag}");
            }
        }

        if (threads is not null && (inFlight is not null || batches is not null))
        {
            throw new ArgumentException("--threads is bench's, --in-flight and --style are the protocol's: give one kind");
        }

        options = threads is { } callers
            ? options with { Batch = batch, InFlight = callers * batch }
            : options with { Batch = batches == true ? batch : 1, InFlight = inFlight ?? options.InFlight };
        if (options.Batch < 1 || options.InFlight < 1 || options.InFlight % options.Batch != 0)
        {
            throw new ArgumentException("--in-flight must be a positive multiple of --batch");
        }

        return options;
    }
}
