/* For Redis.Internal.Protocol.Slot: CRC16/XMODEM (polynomial 0x1021) of one byte with none to three zero
   bytes behind it, 256 entries each. The CRC is linear: an entry is the exclusive or of those of its
   bits, which are powers of x. The preprocessor makes it, so the table is read-only data. */

#include <stdint.h>

#define BIT(n, bit, power) (((n) >> (bit)&1) * (power))
#define ONE(n, a, b, c, d, e, f, g, h) \
  (BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^ BIT(n, 6, g) ^ BIT(n, 7, h))
#define FOUR(n, ...) ONE(n, __VA_ARGS__), ONE(n + 1, __VA_ARGS__), ONE(n + 2, __VA_ARGS__), ONE(n + 3, __VA_ARGS__)
#define SIXTEEN(n, ...) FOUR(n, __VA_ARGS__), FOUR(n + 4, __VA_ARGS__), FOUR(n + 8, __VA_ARGS__), FOUR(n + 12, __VA_ARGS__)
#define QUARTER(n, ...) SIXTEEN(n, __VA_ARGS__), SIXTEEN(n + 16, __VA_ARGS__), SIXTEEN(n + 32, __VA_ARGS__), SIXTEEN(n + 48, __VA_ARGS__)
#define TABLE(...) QUARTER(0, __VA_ARGS__), QUARTER(64, __VA_ARGS__), QUARTER(128, __VA_ARGS__), QUARTER(192, __VA_ARGS__)

const uint16_t redis_client_crc_tables[1024] = {
    TABLE(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188),
    TABLE(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98),
    TABLE(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a),
    TABLE(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38),
};
