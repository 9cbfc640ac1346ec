// The page from outside in: language, look, answers, clock, frame, board.
import { QueryClientProvider, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { followHints } from "../api/hints";
import { newQueryClient } from "../api/queries";
import { SIGN_IN } from "../api/session";
import { SignInPage } from "../boards/access/SignInPage";
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

/** What asks the server as the one who is signed in. */
function Signed({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  useEffect(() => followHints(client), [client]);
  return <ClockProvider>{children}</ClockProvider>;
}

export function App() {
  const [client] = useState(newQueryClient);
  const { path } = usePlace();
  return (
    <LocaleProvider>
      <LookProvider>
        <QueryClientProvider client={client}>
          {path === SIGN_IN ? (
            <SignInPage />
          ) : (
            <Signed>
              <Frame>
                <FencedBoard />
              </Frame>
            </Signed>
          )}
        </QueryClientProvider>
      </LookProvider>
    </LocaleProvider>
  );
}
