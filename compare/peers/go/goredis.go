package main

import (
	"fmt"

	"gopkg.in/redis.v5"
)

const clientName = "go-redis"

var notes = []string{"a connection for each caller", "GOGC=400"}

type goRedis struct{ *redis.Client }

func connect(o options, callers int) (client, int, error) {
	if o.cluster {
		return nil, 0, fmt.Errorf("--cluster: this version does not understand Redis 7, and never learns the slots")
	}
	c := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("%s:%d", o.host, o.port), PoolSize: callers})
	return goRedis{c}, callers, c.Ping().Err()
}

func (c goRedis) get(key string) reply { return got(c.Get(key)) }

func (c goRedis) set(key, value string) reply { return stored(c.Set(key, value, 0)) }

func (c goRedis) batch(l *load, operations []operation, replies []reply) {
	// Each command has its own error; the one of all is the first of these.
	done, _ := c.Pipelined(func(pipeline *redis.Pipeline) error {
		for _, op := range operations {
			if op.set {
				pipeline.Set(l.names[op.key], l.value(op.key), 0)
			} else {
				pipeline.Get(l.names[op.key])
			}
		}
		return nil
	})
	for i, command := range done {
		switch command := command.(type) {
		case *redis.StringCmd:
			replies[i] = got(command)
		case *redis.StatusCmd:
			replies[i] = stored(command)
		}
	}
}

func got(command *redis.StringCmd) reply {
	text, err := command.Result()
	if err == redis.Nil {
		return reply{}
	}
	return reply{text, err == nil, err}
}

func stored(command *redis.StatusCmd) reply {
	text, err := command.Result()
	return reply{text, true, err}
}
