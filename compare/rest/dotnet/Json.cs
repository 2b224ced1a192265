using System;
using System.Buffers;
using System.Collections.Generic;
using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Serialization;
using System.Text.Unicode;

namespace RestService;

internal sealed record User(long Id, string Name, string Email, string? Bio, string CreatedAt);

internal sealed record UserPage(long Page, long Limit, List<User> Data);

internal sealed record UserInput(string? Name, string? Email, string? Bio);

[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
[JsonSerializable(typeof(User))]
[JsonSerializable(typeof(UserPage))]
[JsonSerializable(typeof(UserInput))]
internal sealed partial class UserJson : JsonSerializerContext;

/// <summary>Source-generated JSON with the contract's escapes, into a buffer that its thread keeps.</summary>
internal static class Json
{
    private static readonly UserJson Types = new(new JsonSerializerOptions
    {
        PropertyNamingPolicy = JsonNamingPolicy.CamelCase,
        Encoder = new ContractEncoder(),
        AllowDuplicateProperties = false,
        MaxDepth = 64,
    });

    [ThreadStatic] private static ArrayBufferWriter<byte>? t_buffer;
    [ThreadStatic] private static Utf8JsonWriter? t_writer;

    /// <summary>Valid until the thread writes again.</summary>
    public static ReadOnlyMemory<byte> Write(User user) => Write(user, Types.User);

    /// <summary>Valid until the thread writes again.</summary>
    public static ReadOnlyMemory<byte> Write(UserPage page) => Write(page, Types.UserPage);

    private static ReadOnlyMemory<byte> Write<T>(T value, System.Text.Json.Serialization.Metadata.JsonTypeInfo<T> type)
    {
        ArrayBufferWriter<byte> buffer = t_buffer ??= new ArrayBufferWriter<byte>(16384);
        // SkipValidation: what is written comes from the serializer.
        Utf8JsonWriter writer = t_writer ??= new Utf8JsonWriter(buffer, new JsonWriterOptions { Encoder = Types.Options.Encoder, SkipValidation = true });
        buffer.ResetWrittenCount();
        writer.Reset();
        JsonSerializer.Serialize(writer, value, type);
        writer.Flush();
        return buffer.WrittenMemory;
    }

    /// <summary>What a body says of a user, or null if the contract refuses it.</summary>
    public static UserInput? ReadUserInput(ReadOnlySpan<byte> body)
    {
        if (!Utf8.IsValid(body))
            return null;
        UserInput? input;
        try
        {
            input = JsonSerializer.Deserialize(body, Types.UserInput);
        }
        catch (Exception problem) when (problem is JsonException or InvalidOperationException)
        {
            return null;
        }
        return input != null
            && Within(input.Name, 1, 200)
            && Within(input.Email, 3, 320)
            && input.Email!.Contains('@')
            && (input.Bio == null || Within(input.Bio, 0, 4000))
            ? input
            : null;
    }

    private static bool Within(string? text, int least, int most)
    {
        if (text == null || text.Contains('\0'))
            return false;
        int size = Encoding.UTF8.GetByteCount(text);
        return size >= least && size <= most;
    }

    /// <summary>Escapes what JSON must escape and nothing else. The searches are vectorised, so it is
    /// at least as fast as the encoders of the framework.</summary>
    private sealed class ContractEncoder : JavaScriptEncoder
    {
        private const string Controls = "\0\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f";
        private static readonly SearchValues<char> EscapedChars = SearchValues.Create(Controls + "\"\\");
        private static readonly SearchValues<byte> EscapedBytes = SearchValues.Create(Encoding.ASCII.GetBytes(Controls + "\"\\"));

        public override int MaxOutputCharactersPerInputCharacter => 6;

        public override unsafe int FindFirstCharacterToEncode(char* text, int textLength) =>
            new ReadOnlySpan<char>(text, textLength).IndexOfAny(EscapedChars);

        public override int FindFirstCharacterToEncodeUtf8(ReadOnlySpan<byte> utf8Text) => utf8Text.IndexOfAny(EscapedBytes);

        public override bool WillEncode(int unicodeScalar) => unicodeScalar < 0x20 || unicodeScalar == '"' || unicodeScalar == '\\';

        public override unsafe bool TryEncodeUnicodeScalar(int unicodeScalar, char* buffer, int bufferLength, out int numberOfCharactersWritten)
        {
            Span<char> escape = stackalloc char[6];
            escape[0] = '\\';
            char letter = unicodeScalar switch
            {
                '"' => '"',
                '\\' => '\\',
                '\b' => 'b',
                '\f' => 'f',
                '\n' => 'n',
                '\r' => 'r',
                '\t' => 't',
                _ => 'u',
            };
            escape[1] = letter;
            int size = 2;
            if (letter == 'u')
            {
                escape[2] = '0';
                escape[3] = '0';
                escape[4] = "0123456789ABCDEF"[unicodeScalar >> 4];
                escape[5] = "0123456789ABCDEF"[unicodeScalar & 15];
                size = 6;
            }
            numberOfCharactersWritten = size <= bufferLength ? size : 0;
            return size <= bufferLength && escape[..size].TryCopyTo(new Span<char>(buffer, bufferLength));
        }
    }
}
