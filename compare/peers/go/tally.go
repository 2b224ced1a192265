package main

import (
	"encoding/json"
	"math"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	warming = iota
	open
	over
)

// tally counts what all callers do.
type tally struct {
	phase                              int32
	total, hits, misses, wrong, errors int64
	gets, sets, most                   int64
	buckets                            [64 * 58]int64

	seconds   float64
	cpu       int64
	allocated uint64
}

// window opens and closes, and then returns.
func (t *tally) window(o options) {
	time.Sleep(time.Duration(o.warmup * 1e9))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	opened, cpu := time.Now(), cpuTime()
	atomic.StoreInt32(&t.phase, open)
	time.Sleep(time.Duration(o.duration * 1e9))
	t.seconds, t.cpu = time.Since(opened).Seconds(), cpuTime()-cpu
	atomic.StoreInt32(&t.phase, over)
	runtime.ReadMemStats(&after)
	t.allocated = after.TotalAlloc - before.TotalAlloc
}

func cpuTime() int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return syscall.TimevalToNsec(use.Utime) + syscall.TimevalToNsec(use.Stime)
}

func (t *tally) sent(op operation) {
	if op.set {
		atomic.AddInt64(&t.sets, 1)
	} else {
		atomic.AddInt64(&t.gets, 1)
	}
}

// reply is what a client says: to a SET, `text` is "OK".
type reply struct {
	text  string
	found bool
	err   error
}

func (t *tally) count(l *load, op operation, r reply, took time.Duration) {
	within := atomic.LoadInt32(&t.phase) == open
	switch {
	case r.err != nil:
		atomic.AddInt64(&t.errors, 1)
		return
	case op.set && r.text != "OK":
		atomic.AddInt64(&t.wrong, 1)
		return
	case op.set:
	case !r.found:
		if within {
			atomic.AddInt64(&t.misses, 1)
		}
		within = within && l.misses
	case l.misses || r.text != l.value(op.key):
		atomic.AddInt64(&t.wrong, 1)
		return
	case within:
		atomic.AddInt64(&t.hits, 1)
	}
	if !within {
		return
	}
	atomic.AddInt64(&t.total, 1)
	atomic.AddInt64(&t.buckets[bucketOf(uint64(took))], 1)
	for {
		most := atomic.LoadInt64(&t.most)
		if int64(took) <= most || atomic.CompareAndSwapInt64(&t.most, most, int64(took)) {
			return
		}
	}
}

// 64 buckets for every power of two; below 128 one for every number.
func bucketOf(value uint64) int {
	if value < 128 {
		return int(value)
	}
	shift := bits.Len64(value) - 7
	return shift*64 + int(value>>shift)
}

func bucketEnd(bucket int) int64 {
	if bucket < 128 {
		return int64(bucket)
	}
	shift := bucket/64 - 1
	return int64(bucket-shift*64+1)<<shift - 1
}

func (t *tally) percentile(share float64) int64 {
	rank, seen := int64(math.Max(1, math.Ceil(share*float64(t.total)))), int64(0)
	for i, count := range t.buckets {
		if seen += count; seen >= rank {
			if end := bucketEnd(i); end < t.most {
				return end
			}
			break
		}
	}
	return t.most
}

func (t *tally) report(o options, connections int, notes []string) ([]byte, error) {
	result := map[string]interface{}{
		"schema": "redis-client-compare-peer/1", "client": clientName, "version": clientVersion,
		"runtime": "go " + strings.TrimPrefix(runtime.Version(), "go"), "operation": o.operation,
		"ops_per_sec": float64(t.total) / t.seconds, "duration_sec": t.seconds, "total_ops": t.total,
		"hits": t.hits, "misses": t.misses, "wrong": t.wrong, "errors": t.errors,
		"latency": map[string]int64{
			"p50": t.percentile(0.5), "p90": t.percentile(0.9), "p95": t.percentile(0.95),
			"p99": t.percentile(0.99), "p99_9": t.percentile(0.999), "max": t.most,
		},
		"cpu_ns": t.cpu, "all_get": t.gets, "all_set": t.sets, "connections": connections,
		"stream_check": streamCheck(o.seed), "notes": notes,
	}
	if t.total > 0 {
		result["alloc_bytes_per_op"] = float64(t.allocated) / float64(t.total)
	}
	return json.Marshal(result)
}
