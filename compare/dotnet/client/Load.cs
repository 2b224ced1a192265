// The load: callers that await, a window of time, and what was found in it.

using System.Diagnostics;
using System.Runtime.InteropServices;
using StackExchange.Redis;

namespace RedisClientCompare;

internal sealed record Report
{
    public required Histogram Latencies { get; init; }
    public required double Seconds { get; init; }
    public required long Hits { get; init; }
    public required long Misses { get; init; }
    public required long Wrong { get; init; }
    public required long Errors { get; init; }
    public required long AllGet { get; init; }
    public required long AllSet { get; init; }
    public required long CpuNanos { get; init; }
    public required long AllocatedBytes { get; init; }
    public required int Connections { get; init; }
    public required ulong StreamCheck { get; init; }

    public long TotalOps => Latencies.Count;
}

internal sealed class Load
{
    private readonly Options options;
    private readonly Workload workload;
    private readonly long opens;
    private readonly long closes;

    private Load(Options options, Workload workload, long opens)
    {
        this.options = options;
        this.workload = workload;
        this.opens = opens;
        closes = opens + (long)(options.Duration * Stopwatch.Frequency);
    }

    public static Report Run(Options options)
    {
        var workload = new Workload(options);
        var connections = Connections.Open(options);
        var load = new Load(options, workload, Now() + (long)(options.Warmup * Stopwatch.Frequency));
        var callers = new Task[options.Callers];
        for (var caller = 0; caller < callers.Length; caller++)
        {
            var number = caller;
            var database = connections[caller % connections.Length].GetDatabase();
            callers[caller] = Task.Run(() => options.Batch == 1 ? load.Wait(number, database) : load.Batches(number, database));
        }

        SleepUntil(load.opens);
        var began = Now();
        var cpuBefore = Cpu();
        var allocatedBefore = GC.GetTotalAllocatedBytes(precise: true);
        SleepUntil(load.closes);
        var ended = Now();
        var cpu = Cpu() - cpuBefore;
        var allocated = GC.GetTotalAllocatedBytes(precise: true) - allocatedBefore;
        Task.WaitAll(callers);

        var tally = Tally.Sum();
        // This thread wakes a little late at both ends of the window.
        var exact = (load.closes - load.opens) / (double)(ended - began);
        return new Report
        {
            Latencies = tally.Latencies,
            Seconds = (load.closes - load.opens) / (double)Stopwatch.Frequency,
            Hits = tally.Hits,
            Misses = tally.Misses,
            Wrong = tally.Wrong,
            Errors = tally.Errors,
            AllGet = tally.AllGet,
            AllSet = tally.AllSet,
            CpuNanos = (long)(cpu * exact),
            AllocatedBytes = (long)(allocated * exact),
            Connections = connections.Length,
            StreamCheck = Workload.StreamCheck(options.Seed),
        };
    }

    // One command at a time. The reply of one is the start of the next.
    private async Task Wait(int caller, IDatabase database)
    {
        var state = Workload.FirstState(options.Seed, caller);
        var start = Now();
        while (start < closes)
        {
            var word = Workload.Draw(ref state);
            var number = workload.KeyNumber(word);
            try
            {
                if (workload.IsSet(word))
                {
                    Tally.Own.AllSet++;
                    var stored = await database.StringSetAsync(workload.Key(number), workload.Value(number)).ConfigureAwait(false);
                    start = AnsweredSet(start, stored);
                }
                else
                {
                    Tally.Own.AllGet++;
                    var reply = await database.StringGetAsync(workload.Key(number)).ConfigureAwait(false);
                    start = AnsweredGet(start, number, reply);
                }
            }
            catch (Exception problem) when (problem is RedisException or TimeoutException)
            {
                await Failed().ConfigureAwait(false);
                start = Now();
            }
        }
    }

    // A batch is submitted, then each reply of it awaited.
    private async Task Batches(int caller, IDatabase database)
    {
        var state = Workload.FirstState(options.Seed, caller);
        var gets = new Task<RedisValue>?[options.Batch];
        var sets = new Task<bool>?[options.Batch];
        var numbers = new int[options.Batch];
        var starts = new long[options.Batch];
        while (Now() < closes)
        {
            Submit(database, ref state, gets, sets, numbers, starts);
            for (var place = 0; place < options.Batch; place++)
            {
                try
                {
                    if (gets[place] is { } get)
                    {
                        AnsweredGet(starts[place], numbers[place], await get.ConfigureAwait(false));
                    }
                    else if (sets[place] is { } set)
                    {
                        AnsweredSet(starts[place], await set.ConfigureAwait(false));
                    }
                }
                catch (Exception problem) when (problem is RedisException or TimeoutException)
                {
                    await Failed().ConfigureAwait(false);
                }
            }
        }
    }

    private void Submit(
        IDatabase database, ref ulong state, Task<RedisValue>?[] gets, Task<bool>?[] sets, int[] numbers, long[] starts)
    {
        var tally = Tally.Own;
        var start = Now();
        for (var place = 0; place < options.Batch; place++)
        {
            if ((place & 7) == 0)
            {
                start = Now();
            }

            var word = Workload.Draw(ref state);
            var number = workload.KeyNumber(word);
            numbers[place] = number;
            starts[place] = start;
            if (workload.IsSet(word))
            {
                tally.AllSet++;
                gets[place] = null;
                sets[place] = database.StringSetAsync(workload.Key(number), workload.Value(number));
            }
            else
            {
                tally.AllGet++;
                sets[place] = null;
                gets[place] = database.StringGetAsync(workload.Key(number));
            }
        }
    }

    private long AnsweredGet(long start, int number, RedisValue reply)
    {
        var done = Now();
        var tally = Tally.Own;
        var (right, hit) = workload.Check(number, reply);
        if (!right)
        {
            tally.Wrong++;
        }
        else if (done >= opens && done < closes)
        {
            if (hit)
            {
                tally.Hits++;
            }
            else
            {
                tally.Misses++;
            }

            // A miss that was not asked for is no operation done.
            if (hit || options.Misses)
            {
                tally.Latencies.Record(Nanos(done - start));
            }
        }

        return done;
    }

    private long AnsweredSet(long start, bool stored)
    {
        var done = Now();
        if (!stored)
        {
            Tally.Own.Wrong++;
        }
        else if (done >= opens && done < closes)
        {
            Tally.Own.Latencies.Record(Nanos(done - start));
        }

        return done;
    }

    // A server that is gone fails commands faster than it ever answered them.
    private static Task Failed()
    {
        Tally.Own.Errors++;
        return Task.Delay(1);
    }

    private static long Now() => Stopwatch.GetTimestamp();

    private static long Nanos(long ticks) => ticks * (1_000_000_000 / Stopwatch.Frequency);

    private static void SleepUntil(long time)
    {
        for (var left = time - Now(); left > 0; left = time - Now())
        {
            Thread.Sleep((int)Math.Ceiling(left * 1000.0 / Stopwatch.Frequency));
        }
    }

    // User and system time of all threads. Process.TotalProcessorTime is no
    // finer than a hundredth of a second here.
    private static unsafe long Cpu()
    {
        var usage = stackalloc long[18];
        if (GetResourceUsage(0, usage) != 0)
        {
            throw new InvalidOperationException("getrusage failed");
        }

        return ((usage[0] + usage[2]) * 1_000_000_000) + ((usage[1] + usage[3]) * 1000);
    }

    [DllImport("libc", EntryPoint = "getrusage")]
    private static extern unsafe int GetResourceUsage(int who, long* usage);
}
