// Where the page starts.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { fetchAhead } from "./app/pages";
import { hearScripts } from "./app/upgrade";
import { keepCode, SIGN_IN, signInFrom } from "./api/session";
import { currentPlace, navigate } from "./router/router";
import "./look/base.css";
import "./table/table.css";
import "./gpumap/map.css";
import "./charts/chart.css";
import "./boards/boards.css";
import "./boards/access/access.css";
import "./boards/people/people.css";
import "./boards/usage/usage.css";

hearScripts();
if (keepCode() && currentPlace().path !== SIGN_IN) navigate(signInFrom(currentPlace().path, currentPlace().query), "replace");
if (currentPlace().path !== SIGN_IN) fetchAhead(currentPlace().path);

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
