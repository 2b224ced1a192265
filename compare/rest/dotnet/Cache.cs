using System;
using System.Buffers.Text;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using StackExchange.Redis;

namespace RestService;

/// <summary>Users in Redis, and how none is stored that should be gone: see "The cache" in the contract.</summary>
internal sealed class Cache : IDisposable
{
    private static readonly TimeSpan FillLife = TimeSpan.FromSeconds(10);

    private const string StoreScript =
        "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000) redis.call('DEL', KEYS[2]) end";

    private readonly ConnectionMultiplexer _connection;
    private readonly IDatabase _database;
    private readonly ConcurrentDictionary<long, long> _doubtful = new();
    private readonly string _prefix = Guid.NewGuid().ToString("N") + ".";
    private readonly Timer _keeper;
    private long _words;
    private int _keeping;

    public Cache(Settings settings)
    {
        ConfigurationOptions options = new()
        {
            AbortOnConnectFail = false,
            ConnectTimeout = 1000,
            SyncTimeout = 1000,
            ClientName = "rest-service",
        };
        options.EndPoints.Add(settings.RedisHost, settings.RedisPort);
        _connection = ConnectionMultiplexer.Connect(options);
#if SE_REDIS_1
        // Requests do not care which of them goes on first; later versions have no such order.
        _connection.PreserveAsyncOrder = false;
#endif
        _database = _connection.GetDatabase();
        _keeper = new Timer(_ => Keep(), null, 250, 250);
    }

    /// <summary>Whether the cache may be asked, and told, about a user. Asks for the one entry: whether a
    /// concurrent dictionary is empty is found out by taking all of its locks.</summary>
    public bool Trusts(long id) => !_doubtful.ContainsKey(id);

    /// <summary>The bytes of a user, or null. Throws what <see cref="IsTrouble"/> knows.</summary>
    public Task<RedisValue> Read(long id) => _database.StringGetAsync(UserKey(id));

    /// <summary>The word with which what is read from now on may be stored. Throws likewise.</summary>
    public async ValueTask<string> Reserve(long id)
    {
        string word = _prefix + Interlocked.Increment(ref _words);
        await _database.StringSetAsync(FillKey(id), word, FillLife).ConfigureAwait(false);
        return word;
    }

    /// <summary>Stores a user if the word is still there. Does not wait.</summary>
    public void Store(long id, string word, byte[] bytes)
    {
        if (!Trusts(id))
            return;
        try
        {
            _database.ScriptEvaluate(StoreScript, [UserKey(id), FillKey(id)], [word, bytes], CommandFlags.FireAndForget);
        }
        catch (Exception problem) when (IsTrouble(problem))
        {
        }
    }

    /// <summary>Takes a user out of the cache. If that fails, the user is doubtful from now on.</summary>
    public async ValueTask Invalidate(long id)
    {
        try
        {
            await Delete(id).ConfigureAwait(false);
        }
        catch (Exception problem) when (IsTrouble(problem))
        {
            _doubtful[id] = Interlocked.Increment(ref _words);
        }
    }

    private Task<long> Delete(long id) => _database.KeyDeleteAsync([UserKey(id), FillKey(id)]);

    private async void Keep()
    {
        if (_doubtful.IsEmpty || Interlocked.Exchange(ref _keeping, 1) == 1)
            return;
        foreach (KeyValuePair<long, long> entry in _doubtful.ToArray())
        {
            try
            {
                await Delete(entry.Key).ConfigureAwait(false);
                // Only if it has not failed anew in the meantime.
                _doubtful.TryRemove(entry);
            }
            catch (Exception problem) when (IsTrouble(problem))
            {
            }
        }
        Volatile.Write(ref _keeping, 0);
    }

    /// <summary>Whether Redis is in trouble, and not the service.</summary>
    public static bool IsTrouble(Exception problem) =>
        problem is RedisException or TimeoutException or ObjectDisposedException or InvalidOperationException or OperationCanceledException;

    private static RedisKey UserKey(long id)
    {
        Span<byte> text = stackalloc byte[32];
        "user:"u8.CopyTo(text);
        Utf8Formatter.TryFormat(id, text[5..], out int written);
        return text[..(5 + written)].ToArray();
    }

    private static RedisKey FillKey(long id) => Encoding.ASCII.GetBytes("{user:" + id + "}:fill");

    public void Dispose()
    {
        _keeper.Dispose();
        _connection.Dispose();
    }
}
