// What is counted. A continuation runs on whichever pool thread is free, and
// recording never awaits: so there is one tally per thread, and no lock.

using System.Numerics;

namespace RedisClientCompare;

internal sealed class Tally
{
    private static readonly List<Tally> Every = new();

    [ThreadStatic]
    private static Tally? own;

    public Histogram Latencies { get; } = new();
    public long Hits { get; set; }
    public long Misses { get; set; }
    public long Wrong { get; set; }
    public long Errors { get; set; }
    public long AllGet { get; set; }
    public long AllSet { get; set; }

    public static Tally Own => own ?? Register();

    // Only when nobody counts any more.
    public static Tally Sum()
    {
        var sum = new Tally();
        lock (Every)
        {
            foreach (var one in Every)
            {
                sum.Latencies.Add(one.Latencies);
                sum.Hits += one.Hits;
                sum.Misses += one.Misses;
                sum.Wrong += one.Wrong;
                sum.Errors += one.Errors;
                sum.AllGet += one.AllGet;
                sum.AllSet += one.AllSet;
            }
        }

        return sum;
    }

    private static Tally Register()
    {
        own = new Tally();
        lock (Every)
        {
            Every.Add(own);
        }

        return own;
    }
}

// Nanoseconds in buckets: 128 of each power of two, so less than 0.8 % wide.
internal sealed class Histogram
{
    private const int Bits = 7;
    private readonly long[] buckets = new long[(64 - Bits) << Bits];

    public long Count { get; private set; }
    public long Max { get; private set; }

    public void Record(long nanos)
    {
        buckets[BucketOf((ulong)Math.Max(0, nanos))]++;
        Count++;
        Max = Math.Max(Max, nanos);
    }

    public void Add(Histogram other)
    {
        for (var bucket = 0; bucket < buckets.Length; bucket++)
        {
            buckets[bucket] += other.buckets[bucket];
        }

        Count += other.Count;
        Max = Math.Max(Max, other.Max);
    }

    // The upper end of the bucket in which that percentile lies.
    public long Percentile(double percentile)
    {
        var rank = (long)Math.Ceiling(Count * percentile / 100);
        var seen = 0L;
        for (var bucket = 0; bucket < buckets.Length; bucket++)
        {
            seen += buckets[bucket];
            if (seen >= rank && seen > 0)
            {
                return Math.Min(Max, UpperEnd(bucket));
            }
        }

        return Max;
    }

    // Below 2^Bits a bucket per value; above, the top Bits + 1 bits decide.
    private static int BucketOf(ulong value)
    {
        var shift = Math.Max(0, BitOperations.Log2(value | 1) - Bits);
        return (shift << Bits) + (int)(value >> shift);
    }

    private static long UpperEnd(int bucket)
    {
        var shift = Math.Max(0, (bucket >> Bits) - 1);
        var top = (long)bucket - ((long)shift << Bits);
        return ((top + 1) << shift) - 1;
    }
}
