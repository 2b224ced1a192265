/* Gets one value with hiredis, as value.py says.
 *
 *   get PORT KEY     says the value's bytes, and the nanoseconds that it took */
#define _GNU_SOURCE
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "get: %s: %s\n", what, why);
  exit(1);
}

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

int main(int count, char **arguments) {
  if (count != 3) fail("arguments", "PORT KEY");
  redisContext *context = redisConnect("127.0.0.1", atoi(arguments[1]));
  if (!context || context->err) fail("connecting", context ? context->errstr : "no memory");
  long long began = now();
  redisReply *reply = redisCommand(context, "GET %s", arguments[2]);
  if (!reply) fail("hiredis", context->errstr);
  if (reply->type != REDIS_REPLY_STRING) fail("GET", "no string");
  printf("%zu %lld\n", (size_t)reply->len, now() - began);
  freeReplyObject(reply);
  redisFree(context);
  return 0;
}
