using System;
using System.Reflection;
using System.Runtime.InteropServices;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;
using RestService;

Settings settings = Settings.FromEnvironment();
Statements statements = new(settings.SqlFile);

if (settings.SystemSqlite)
{
    // The system's SQLite, which the other service uses too, instead of the package's.
    NativeLibrary.SetDllImportResolver(
        typeof(SQLitePCL.SQLite3Provider_e_sqlite3).Assembly,
        static (name, assembly, path) => name == "e_sqlite3" ? NativeLibrary.Load("libsqlite3.so.0") : 0);
}
SQLitePCL.Batteries_V2.Init();

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(args);
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel =>
{
    kestrel.ListenLocalhost(settings.Port);
    kestrel.AddServerHeader = false;
    // The contract's own limit answers before this one.
    kestrel.Limits.MaxRequestBodySize = null;
    TimeSpan patience = TimeSpan.FromSeconds(settings.ClientTimeout);
    kestrel.Limits.RequestHeadersTimeout = patience;
    kestrel.Limits.KeepAliveTimeout = patience < TimeSpan.FromSeconds(30) ? TimeSpan.FromSeconds(30) : patience;
    kestrel.Limits.MinRequestBodyDataRate = new MinDataRate(bytesPerSecond: 1, gracePeriod: patience);
});
WebApplication app = builder.Build();

IDisposable[] parts;
if (settings.Naive)
{
    NaiveUsers users = new(settings, statements);
    Endpoints.Map(app, users);
    parts = [users];
}
else
{
    // The writer first: it is the one that may make the log of a new database.
    Writer writer = new(statements, settings.Database);
    Readers readers = new(statements, settings.Database);
    Cache cache = new(settings);
    Endpoints.Serve(app, new TunedUsers(cache, readers, writer));
    parts = [writer, readers, cache];
}

app.Lifetime.ApplicationStarted.Register(() =>
{
    Console.WriteLine("listening on " + settings.Port);
    Console.Out.Flush();
});
app.Run();
foreach (IDisposable part in parts)
    part.Dispose();
