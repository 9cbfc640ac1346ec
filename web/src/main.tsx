// Where the page starts.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { fetchAhead } from "./app/pages";
import { hearScripts } from "./app/upgrade";
import { currentPlace } from "./router/router";
import "./look/base.css";
import "./table/table.css";
import "./gpumap/map.css";
import "./charts/chart.css";
import "./boards/boards.css";

hearScripts();
fetchAhead(currentPlace().path);

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
