// The stream of operations of compare/PROTOCOL.md: SplitMix64 draws, keys by
// number, and of each key one value. All of it is made before the clock starts,
// in the form that the library takes most cheaply.

using System.Text;
using StackExchange.Redis;

namespace RedisClientCompare;

internal sealed class Workload
{
    private const ulong Gamma = 0x9e3779b97f4a7c15;
    private const int Offsets = 4096;

    private readonly RedisKey[] keys;
    private readonly RedisValue[] values;
    private readonly byte[] block;
    private readonly int valueSize;
    private readonly ulong setsBelow;
    private readonly bool misses;

    public Workload(Options options)
    {
        var prefix = options.Misses ? "mis:" : "key:";
        var digits = options.KeySize - prefix.Length;
        keys = new RedisKey[options.Keys];
        for (var number = 0; number < keys.Length; number++)
        {
            keys[number] = Encoding.ASCII.GetBytes(prefix + number.ToString().PadLeft(digits, '0'));
        }

        valueSize = options.ValueSize;
        misses = options.Misses;
        block = new byte[Offsets + valueSize];
        for (var place = 0; place < block.Length; place++)
        {
            block[place] = (byte)('a' + (((Mix(1 + ((ulong)place * Gamma)) >> 32) * 26) >> 32));
        }

        values = new RedisValue[Offsets];
        for (var offset = 0; offset < Offsets; offset++)
        {
            values[offset] = block.AsSpan(offset, valueSize).ToArray();
        }

        setsBelow = options.Operation switch
        {
            Operation.Get => 0,
            Operation.Set => 0x100000000,
            _ => 0x100000000 / 5,
        };
    }

    public static ulong Mix(ulong z)
    {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    public static ulong FirstState(ulong seed, int caller) => Mix(seed + Mix((ulong)caller + 1));

    public static ulong Draw(ref ulong state) => Mix(state += Gamma);

    // The sum of the first thousand words of caller 0.
    public static ulong StreamCheck(ulong seed)
    {
        var state = FirstState(seed, 0);
        var sum = 0UL;
        for (var place = 0; place < 1000; place++)
        {
            sum += Draw(ref state);
        }

        return sum;
    }

    public int KeyNumber(ulong word) => (int)(((word >> 32) * (ulong)keys.Length) >> 32);

    public bool IsSet(ulong word) => (word & 0xffffffff) < setsBelow;

    public RedisKey Key(int number) => keys[number];

    public RedisValue Value(int number) => values[Mix((ulong)number) & (Offsets - 1)];

    // Whether a GET's reply is what it must be, and whether it found something.
    public (bool Right, bool Hit) Check(int number, RedisValue reply)
    {
        if (reply.IsNull)
        {
            return (true, false);
        }

        if (misses)
        {
            return (false, true);
        }

        var expected = block.AsSpan((int)(Mix((ulong)number) & (Offsets - 1)), valueSize);
#if SE_REDIS_1
        ReadOnlySpan<byte> bytes = (byte[])reply;
#else
        var bytes = ((ReadOnlyMemory<byte>)reply).Span;
#endif
        return (bytes.SequenceEqual(expected), true);
    }
}
