using System;
using System.Buffers;
using System.IO.Pipelines;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.WebUtilities;

namespace RestService;

/// <summary>The contract's paths, methods, parameters and bodies.</summary>
internal static class Endpoints
{
    private const int LargestBody = 65536;

    /// <summary>By the framework's routes, as the original had them.</summary>
    public static void Map(WebApplication app, IUsers users)
    {
        app.MapGet("/users/{id}", (RequestDelegate)(context => Get(context, users, Id(context))));
        app.MapPut("/users/{id}", (RequestDelegate)(context => Put(context, users, Id(context))));
        app.MapDelete("/users/{id}", (RequestDelegate)(context => Delete(context, users, Id(context))));
        app.Map("/users/{id}", (RequestDelegate)(context => NotAllowed(context, "GET, PUT, DELETE")));
        app.MapGet("/users", (RequestDelegate)(context => List(context, users)));
        app.MapPost("/users", (RequestDelegate)(context => Post(context, users)));
        app.Map("/users", (RequestDelegate)(context => NotAllowed(context, "GET, POST")));
        app.MapFallback((RequestDelegate)(context => Send(context, Reply.NotFound)));
    }

    /// <summary>The same without routes: the two paths are told apart here, as the other service does it.</summary>
    public static void Serve(WebApplication app, IUsers users) => app.Run(context => Answer(context, users));

    private static Task Answer(HttpContext context, IUsers users)
    {
        string path = context.Request.Path.Value ?? "";
        if (!path.StartsWith("/users", StringComparison.Ordinal))
            return Send(context, Reply.NotFound);
        string method = context.Request.Method;
        ReadOnlySpan<char> rest = path.AsSpan("/users".Length);
        if (rest.Length == 0 || rest is "/")
        {
            return HttpMethods.IsGet(method) ? List(context, users)
                : HttpMethods.IsPost(method) ? Post(context, users)
                : NotAllowed(context, "GET, POST");
        }
        if (rest[0] != '/')
            return Send(context, Reply.NotFound);
        // A slash at the end does not matter.
        rest = rest[^1] == '/' ? rest[1..^1] : rest[1..];
        if (rest.Length == 0 || rest.Contains('/'))
            return Send(context, Reply.NotFound);
        return HttpMethods.IsGet(method) ? Get(context, users, rest)
            : HttpMethods.IsPut(method) ? Put(context, users, rest)
            : HttpMethods.IsDelete(method) ? Delete(context, users, rest)
            : NotAllowed(context, "GET, PUT, DELETE");
    }

    private static ReadOnlySpan<char> Id(HttpContext context) => (string?)context.Request.RouteValues["id"];

    private static Task Get(HttpContext context, IUsers users, ReadOnlySpan<char> text) =>
        TryDigits(text, 18, out long id) ? Send(context, users.Get(id)) : Send(context, Reply.InvalidId);

    private static Task Put(HttpContext context, IUsers users, ReadOnlySpan<char> text) =>
        TryDigits(text, 18, out long id) ? Change(context, users, id) : Send(context, Reply.InvalidId);

    private static Task Change(HttpContext context, IUsers users, long id) =>
        Send(context, WithInput(context, input => users.Change(id, input)));

    private static Task Delete(HttpContext context, IUsers users, ReadOnlySpan<char> text) =>
        TryDigits(text, 18, out long id) ? Send(context, users.Delete(id)) : Send(context, Reply.InvalidId);

    private static Task List(HttpContext context, IUsers users) =>
        TryPage(context.Request.QueryString.Value, out long page, out long limit)
            ? Send(context, users.List(page, limit))
            : Send(context, Reply.InvalidPage);

    private static Task Post(HttpContext context, IUsers users) => Send(context, WithInput(context, users.Add));

    private static Task NotAllowed(HttpContext context, string allowed)
    {
        context.Response.Headers.Allow = allowed;
        return Send(context, Reply.MethodNotAllowed);
    }

    private static async ValueTask<Reply> WithInput(HttpContext context, Func<UserInput, ValueTask<Reply>> action)
    {
        if (context.Request.ContentLength > LargestBody)
            return Reply.BodyTooLarge;
        PipeReader body = context.Request.BodyReader;
        while (true)
        {
            ReadResult read = await body.ReadAsync().ConfigureAwait(false);
            if (read.Buffer.Length > LargestBody)
            {
                body.AdvanceTo(read.Buffer.End);
                return Reply.BodyTooLarge;
            }
            if (read.IsCompleted)
            {
                UserInput? input = Parse(read.Buffer);
                body.AdvanceTo(read.Buffer.End);
                return input == null ? Reply.InvalidUser : await action(input).ConfigureAwait(false);
            }
            body.AdvanceTo(read.Buffer.Start, read.Buffer.End);
        }
    }

    private static UserInput? Parse(ReadOnlySequence<byte> body) =>
        Json.ReadUserInput(body.IsSingleSegment ? body.FirstSpan : body.ToArray());

    private static Task Send(HttpContext context, ValueTask<Reply> pending) =>
        pending.IsCompletedSuccessfully ? Send(context, pending.Result) : SendLater(context, pending);

    private static async Task SendLater(HttpContext context, ValueTask<Reply> pending) =>
        await Send(context, await pending.ConfigureAwait(false)).ConfigureAwait(false);

    private static Task Send(HttpContext context, in Reply reply)
    {
        HttpResponse response = context.Response;
        response.StatusCode = reply.Status;
        response.ContentType = "application/json";
        // What the thread's buffer holds is copied before anything else can run on the thread.
        ReadOnlySpan<byte> body =
            reply.Body != null ? reply.Body
            : reply.User != null ? Json.Write(reply.User).Span
            : Json.Write(reply.Page!).Span;
        response.ContentLength = body.Length;
        if (reply.Location != null)
            response.Headers.Location = reply.Location;
        // Kestrel sends it when the request ends.
        response.BodyWriter.Write(body);
        return Task.CompletedTask;
    }

    private static bool TryDigits(ReadOnlySpan<char> text, int most, out long value)
    {
        value = 0;
        if (text.Length == 0 || text.Length > most)
            return false;
        foreach (char digit in text)
        {
            if (digit < '0' || digit > '9')
                return false;
            value = value * 10 + (digit - '0');
        }
        return true;
    }

    private static bool TryPage(string? query, out long page, out long limit)
    {
        page = 1;
        limit = 20;
        bool pageGiven = false, limitGiven = false;
        foreach (QueryStringEnumerable.EncodedNameValuePair pair in new QueryStringEnumerable(query))
        {
            ReadOnlyMemory<char> name = pair.DecodeName();
            if (name.Span.SequenceEqual("page"))
            {
                if (pageGiven || !TryDigits(pair.DecodeValue().Span, 9, out page) || page == 0)
                    return false;
                pageGiven = true;
            }
            else if (name.Span.SequenceEqual("limit"))
            {
                if (limitGiven || !TryDigits(pair.DecodeValue().Span, 9, out limit) || limit == 0)
                    return false;
                limitGiven = true;
            }
        }
        limit = Math.Min(limit, 100);
        return true;
    }
}
