import Redis from "ioredis";
import { versionOf } from "./version.js";
import { openWith } from "./ioredis-like.js";

export const version = versionOf("ioredis");
export const notes = ["enableAutoPipelining, from 64 in flight on"];
export const open = (options) => openWith(Redis, options);
