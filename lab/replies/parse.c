/* Parses replies with hiredis and frees them, as replies.py says.
 *
 *   parse FOLDER     reads lines, answers each with one
 *
 * A line is "parse FILE RUNS" for a file of the folder, or "feed FILE RUNS". Parsing
 * alone begins with the bytes in the reader's buffer; with feeding, they are copied
 * there first, as hiredis does with what it has read from a socket. The answer:
 * nanoseconds of processor time of all runs, bytes of the heap that one reply holds,
 * and the number of its elements. */
#define _GNU_SOURCE
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "parse: %s: %s\n", what, why);
  exit(1);
}

static long long cpu_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static char *contents(const char *folder, const char *name, size_t *size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) fail(path, "cannot be opened");
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*size);
  if (!bytes || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
  fclose(file);
  return bytes;
}

static size_t heap(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static size_t elements(const redisReply *reply) {
#ifdef REDIS_REPLY_MAP
  if (reply->type == REDIS_REPLY_MAP) return reply->elements;
#endif
  return reply->type == REDIS_REPLY_ARRAY ? reply->elements : 1;
}

/* The bytes are in the buffer again. When the reader has used them up it cuts the
 * buffer to nothing, which writes a zero over the first byte and moves none. */
static void rewound(redisReader *reader, char first, size_t size) {
  reader->buf[0] = first;
  sdssetlen(reader->buf, size);
  reader->pos = 0;
  reader->len = size;
}

static void fed(redisReader *reader, const char *bytes, size_t size) {
  if (redisReaderFeed(reader, bytes, size) != REDIS_OK) fail("hiredis", reader->errstr);
}

static redisReply *next_reply(redisReader *reader, int feeding, const char *bytes, size_t size) {
  void *reply = NULL;
  if (feeding)
    fed(reader, bytes, size);
  else
    rewound(reader, bytes[0], size);
  if (redisReaderGetReply(reader, &reply) != REDIS_OK) fail("hiredis", reader->errstr);
  if (!reply) fail("hiredis", "the reply is not whole");
  return reply;
}

int main(int count, char **arguments) {
  if (count != 2) fail("arguments", "FOLDER");
  char line[1024], way[64], name[512];
  long runs;
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%63s %511s %ld", way, name, &runs) != 3) fail("not understood", line);
    int feeding = strcmp(way, "feed") == 0;
    if (!feeding && strcmp(way, "parse") != 0) fail("not understood", line);
    size_t size, found = 0;
    char *bytes = contents(arguments[1], name, &size);
    redisReader *reader = redisReaderCreate();
    if (!reader) fail("hiredis", "no reader");
    if (!feeding) fed(reader, bytes, size);
    long long begun = cpu_now();
    for (long run = 0; run < runs; run++) {
      redisReply *reply = next_reply(reader, feeding, bytes, size);
      found = elements(reply);
      freeReplyObject(reply);
    }
    long long spent = cpu_now() - begun;
    size_t before = heap();
    redisReply *kept = next_reply(reader, feeding, bytes, size);
    size_t held = heap() - before;
    freeReplyObject(kept);
    printf("%lld %zu %zu\n", spent, held, found);
    fflush(stdout);
    redisReaderFree(reader);
    free(bytes);
  }
  return 0;
}
