// One scenario by autocannon, without pipelining, on one thread. Prints
// autocannon's own JSON with three things more: how busy its core was (a
// generator that is busy measures itself), percentiles of the response times that
// are not in whole milliseconds, p95 among them, and the answers by status.
//
//   node run.js PORT SECONDS CONNECTIONS SCENARIO NEXT_ID RUN
//
// The scenarios are those of ../wrk. RUN makes the e-mail addresses of one run
// differ from those of another; the first user that it creates gets NEXT_ID.
'use strict'

const autocannon = require('autocannon')

const [port, seconds, connections] = process.argv.slice(2, 5).map(Number)
const [scenario, nextId, run] = process.argv.slice(5)

// SplitMix32: the same requests for every service.
let state = 42
function below (bound) {
  state = (state + 0x9e3779b9) | 0
  let word = state ^ (state >>> 16)
  word = Math.imul(word, 0x21f0aaad)
  word ^= word >>> 15
  word = Math.imul(word, 0x735a2d97)
  return ((word ^ (word >>> 15)) >>> 0) % bound
}

let made = 0
let deleted = 0
const one = () => ({ method: 'GET', path: `/users/${1 + below(10000)}` })
const list = page => ({ method: 'GET', path: `/users?page=${page}&limit=20` })
const written = (method, path) => ({
  method,
  path,
  headers: { 'content-type': 'application/json' },
  body: `{"name":"Bench User","email":"cannon_${run}_${made++}@test.example","bio":"Written by the load generator"}`
})
const scenarios = {
  single: one,
  list: () => list(1),
  post: () => written('POST', '/users'),
  mixed: () => {
    const draw = below(100)
    if (draw < 70) return one()
    if (draw < 80) return list(1 + below(2))
    if (draw < 90) return written('POST', '/users')
    if (draw < 95) return written('PUT', `/users/${1 + below(10000)}`)
    // The oldest that the mix has created.
    return { method: 'DELETE', path: `/users/${Number(nextId) + deleted++}` }
  }
}
const next = scenarios[scenario]
if (!next) throw new Error(`there is no scenario '${scenario}'`)

const options = {
  url: `http://127.0.0.1:${port}`,
  connections,
  duration: seconds,
  requests: [{ setupRequest: request => ({ ...request, headers: {}, body: undefined, ...next() }) }]
}

const before = process.cpuUsage()
const began = process.hrtime.bigint()
const times = []
const statuses = {}
const instance = autocannon(options, (problem, result) => {
  if (problem) throw problem
  const used = process.cpuUsage(before)
  const micros = Number(process.hrtime.bigint() - began) / 1000
  const sorted = Float64Array.from(times).sort()
  const point = share => sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : 0
  console.log(JSON.stringify({
    generatorBusy: (used.user + used.system) / micros,
    responseTimesMs: { p50: point(0.5), p95: point(0.95), p99: point(0.99) },
    statuses,
    ...result
  }))
  // In the mix a deletion may come before its user: one answer in a thousand, and a few at the start.
  const missing = scenario === 'mixed' ? Math.min(statuses[404] || 0, Math.max(10, times.length / 1000)) : 0
  process.exitCode = result.errors + result.timeouts + result.non2xx - missing <= 0 && times.length > 0 ? 0 : 2
})
instance.on('response', (client, status, bytes, time) => {
  times.push(time)
  statuses[status] = (statuses[status] || 0) + 1
})
