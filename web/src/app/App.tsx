// The page from outside in: language, look, answers, clock, frame, board.
import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { followHints } from "../api/hints";
import { newQueryClient } from "../api/queries";
import { LocaleProvider } from "../i18n/locale";
import { LookProvider } from "../look/theme";
import { usePlace } from "../router/router";
import { Board } from "./Board";
import { ClockProvider } from "./clock";
import { Fence } from "./Fence";
import { Frame } from "./Frame";

function FencedBoard() {
  const { path } = usePlace();
  return (
    <Fence path={path}>
      <Board />
    </Fence>
  );
}

export function App() {
  const [client] = useState(newQueryClient);
  useEffect(() => followHints(client), [client]);
  return (
    <LocaleProvider>
      <LookProvider>
        <QueryClientProvider client={client}>
          <ClockProvider>
            <Frame>
              <FencedBoard />
            </Frame>
          </ClockProvider>
        </QueryClientProvider>
      </LookProvider>
    </LocaleProvider>
  );
}
