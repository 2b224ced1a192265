/* Takes messages of one channel with hiredis, as fanin.py says.
 *
 *   take PORT COUNT     says "ready", takes so many messages, and says how it went
 *
 * It says nanoseconds from the first message to the last, nanoseconds of processor time
 * of the same, and the bytes of all payloads. */
#define _GNU_SOURCE
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "take: %s: %s\n", what, why);
  exit(1);
}

static long long now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static size_t message(redisContext *context) {
  redisReply *reply = NULL;
  if (redisGetReply(context, (void **)&reply) != REDIS_OK) fail("hiredis", context->errstr);
  if (reply->elements != 3) fail("hiredis", "no message");
  size_t size = reply->element[2]->len;
  freeReplyObject(reply);
  return size;
}

int main(int count, char **arguments) {
  if (count != 3) fail("arguments", "PORT COUNT");
  redisContext *context = redisConnect("127.0.0.1", atoi(arguments[1]));
  if (!context || context->err) fail("connect", context ? context->errstr : "no memory");
  redisReply *reply = redisCommand(context, "SUBSCRIBE fanin");
  if (!reply) fail("subscribe", context->errstr);
  freeReplyObject(reply);
  puts("ready");
  fflush(stdout);
  long wanted = atol(arguments[2]);
  size_t bytes = message(context);
  long long began = now(CLOCK_MONOTONIC), spent = now(CLOCK_PROCESS_CPUTIME_ID);
  for (long taken = 1; taken < wanted; taken++) bytes += message(context);
  printf("%lld %lld %zu\n", now(CLOCK_MONOTONIC) - began, now(CLOCK_PROCESS_CPUTIME_ID) - spent, bytes);
  redisFree(context);
  return 0;
}
