#include "nodes.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS = 16384 };

unsigned node_count;
struct node nodes[64];
static unsigned char node_of_slot[SLOTS];

/* CRC16/XMODEM, the slots' */
static uint16_t crc_table[256];

static unsigned slot(const char *key, size_t length) {
  uint16_t crc = 0;
  for (size_t i = 0; i < length; i++)
    crc = (uint16_t)(crc << 8) ^ crc_table[(crc >> 8) ^ (unsigned char)key[i]];
  return crc % SLOTS;
}

redisContext *dial(const char *host, int port) {
  redisContext *context = redisConnect(host, port);
  if (context == NULL || context->err) die("%s:%d: %s", host, port, context ? context->errstr : "no memory");
  return context;
}

void learn_nodes(const struct options *options) {
  for (unsigned i = 0; i < 256; i++) {
    uint16_t crc = (uint16_t)(i << 8);
    for (int bit = 0; bit < 8; bit++) crc = (uint16_t)(crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
    crc_table[i] = crc;
  }
  if (!options->cluster) {
    snprintf(nodes[0].host, sizeof nodes[0].host, "%s", options->host);
    nodes[0].port = options->port;
    node_count = 1;
    return;
  }
  redisContext *context = dial(options->host, options->port);
  redisReply *ranges = redisCommand(context, "CLUSTER SLOTS");
  if (ranges == NULL || ranges->type != REDIS_REPLY_ARRAY || ranges->elements == 0) die("CLUSTER SLOTS: no slots");
  for (size_t i = 0; i < ranges->elements; i++) {
    redisReply **range = ranges->element[i]->element, **primary = range[2]->element;
    unsigned node = 0;
    while (node < node_count &&
           (nodes[node].port != (int)primary[1]->integer || strcmp(nodes[node].host, primary[0]->str)))
      node++;
    if (node == sizeof nodes / sizeof *nodes) die("more than %u nodes", node);
    if (node == node_count) {
      snprintf(nodes[node].host, sizeof nodes[node].host, "%s", primary[0]->str);
      nodes[node].port = (int)primary[1]->integer;
      node_count++;
    }
    for (long long s = range[0]->integer; s <= range[1]->integer; s++) node_of_slot[s & (SLOTS - 1)] = (unsigned char)node;
  }
  freeReplyObject(ranges);
  redisFree(context);
}

unsigned node_of(const struct options *options, const char *key) {
  return options->cluster ? node_of_slot[slot(key, options->key_size)] : 0;
}

enum outcome load_judge(const struct options *options, struct operation operation, const redisReply *reply) {
  if (reply->type == REDIS_REPLY_ERROR) return FAILED;
  if (operation.set)
    return reply->type == REDIS_REPLY_STATUS && reply->len == 2 && !memcmp(reply->str, "OK", 2) ? STORED : WRONG;
  if (reply->type == REDIS_REPLY_NIL) return MISS;
  return !options->misses && reply->type == REDIS_REPLY_STRING && reply->len == options->value_size &&
                 !memcmp(reply->str, load_value(operation.key), options->value_size)
             ? HIT
             : WRONG;
}
