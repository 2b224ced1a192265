// How StackExchange.Redis is told to connect.

using StackExchange.Redis;

namespace RedisClientCompare;

internal static class Connections
{
    // 2.x has threads of its own for what comes from the socket; its
    // documentation says that the pool of the runtime "can perform better for
    // very small numbers of cores". Both were tried; SE_REDIS_OWN_THREADS=1
    // takes its own.
    public static bool OwnThreads => Environment.GetEnvironmentVariable("SE_REDIS_OWN_THREADS") == "1";

    public static ConnectionMultiplexer[] Open(Options options)
    {
        var opened = new ConnectionMultiplexer[options.Connections];
        for (var place = 0; place < opened.Length; place++)
        {
            opened[place] = ConnectionMultiplexer.Connect(Configuration(options));
#if SE_REDIS_1
            // Callers do not care whose reply is handed on first; later versions have no such order.
            opened[place].PreserveAsyncOrder = false;
#endif
        }

        return opened;
    }

    private static ConfigurationOptions Configuration(Options options)
    {
        var configuration = new ConfigurationOptions
        {
            AbortOnConnectFail = true,
            ConnectTimeout = 10000,
            SyncTimeout = 10000,
            // Otherwise it sends a GET of its own when it connects, which the servers count.
            TieBreaker = "",
            Password = options.Password,
            Ssl = options.Tls,
            SslHost = options.Tls ? options.Host : null,
        };
        configuration.EndPoints.Add(options.Host, options.Port);
#if SE_REDIS_2
        if (!OwnThreads)
        {
            configuration.SocketManager = SocketManager.ThreadPool;
        }
#endif
        return configuration;
    }
}
