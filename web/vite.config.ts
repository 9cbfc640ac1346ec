// Builds the page into the Python package; addresses stay relative so that the same files work below any base path.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { fixtureApi } from "./dev/fixture-api.ts";

const realServer = process.env["FAIRLEAD_SERVER"];

export default defineConfig(({ command, isPreview }) => ({
  base: command === "build" ? "./" : "/",
  plugins: [react(), ...(command === "serve" && !realServer ? [fixtureApi({ strict: Boolean(isPreview) })] : [])],
  build: {
    outDir: "../src/fairlead/web_dist",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 1600,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", ...(realServer ? { proxy: { "/api": realServer } } : {}) },
  preview: { host: "127.0.0.1" },
  test: { include: ["test/**/*.test.ts"], environment: "node", isolate: false },
}));
