// GET of random users by autocannon: 100 connections, without pipelining, one
// thread. Prints autocannon's own JSON, and how busy its core was: a generator
// that is busy measures itself.
//
//   node run.js PORT SECONDS CONNECTIONS
'use strict'

const autocannon = require('autocannon')

const [port, seconds, connections] = process.argv.slice(2).map(Number)

// SplitMix32: the same ids for every service.
let state = 42
function randomId () {
  state = (state + 0x9e3779b9) | 0
  let word = state ^ (state >>> 16)
  word = Math.imul(word, 0x21f0aaad)
  word ^= word >>> 15
  word = Math.imul(word, 0x735a2d97)
  return 1 + ((word ^ (word >>> 15)) >>> 0) % 10000
}

const options = {
  url: `http://127.0.0.1:${port}`,
  connections,
  duration: seconds,
  requests: [{ setupRequest: request => ({ ...request, path: `/users/${randomId()}` }) }]
}

const before = process.cpuUsage()
const began = process.hrtime.bigint()
autocannon(options, (problem, result) => {
  if (problem) throw problem
  const used = process.cpuUsage(before)
  const micros = Number(process.hrtime.bigint() - began) / 1000
  console.log(JSON.stringify({ generatorBusy: (used.user + used.system) / micros, ...result }))
  process.exitCode = result.errors + result.timeouts + result.non2xx === 0 ? 0 : 2
})
