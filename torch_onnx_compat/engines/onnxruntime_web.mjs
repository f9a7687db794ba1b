// Runs ONNX files in onnxruntime-web, in WebAssembly on one thread. Started by onnxruntime_web.py with the package's directory.
// Each line of standard input is a JSON job: {"load": path}, or {"run": {name: tensor}, "outputs": [name]}. Each line of
// standard output is a JSON answer: {"error"} or {"tensors": [tensor]}. A tensor is {"type", "dims", "data"}: base64.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const ort = await import(pathToFileURL(path.join(process.argv[2], "dist", "ort.node.min.mjs")));
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array,
  uint64: BigUint64Array, bool: Uint8Array,
};

function decoded({ type, dims, data }) {
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  return new ort.Tensor(type, new arrays[type](bytes.buffer), dims);
}

function encoded({ type, dims, data }) {
  return { type, dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
}

let session;

async function answer(job) {
  if (job.load) {
    await session?.release();
    session = undefined;
    session = await ort.InferenceSession.create(fs.readFileSync(job.load), { executionProviders: ["wasm"] });
    return { tensors: [] };
  }
  const feeds = Object.fromEntries(Object.entries(job.run).map(([name, tensor]) => [name, decoded(tensor)]));
  const found = await session.run(feeds, job.outputs);
  return { tensors: job.outputs.map((name) => encoded(found[name])) };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const told = await answer(JSON.parse(line)).catch((error) => ({ error: String(error?.message ?? error) }));
  process.stdout.write(JSON.stringify(told) + "\n");
}
