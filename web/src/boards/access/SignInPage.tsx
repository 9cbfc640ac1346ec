// Signing in: with a Kubernetes token, the console's one-time code, or at the company's provider. Nothing here is kept by the page.
import { Button, Input } from "antd";
import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../../api/fetch";
import { enter, isSignedIn, nextOf, providerAddress, readMethods, signIn, takeCode } from "../../api/session";
import type { SignInMethods } from "../../api/types";
import { LookTools } from "../../app/LookTools";
import { Mark } from "../../app/Mark";
import { useWords } from "../../i18n/locale";
import { Answered, Bones } from "../../parts/States";
import { usePlace } from "../../router/router";

export function SignInPage() {
  const { t } = useWords();
  const asked = useQuery({ queryKey: ["signin"], queryFn: ({ signal }) => readMethods(signal), refetchInterval: ({ state }) => (state.error ? 3000 : false) });
  useEffect(() => {
    document.title = `${t("signin.title")} · Fairlead`;
  }, [t]);
  return (
    <main className="signin" data-testid="page-signin">
      <div className="signin-box">
        <div className="signin-head">
          <Mark />
          <span className="word">Fairlead</span>
          <span className="spring" />
          <LookTools />
        </div>
        <h1>{t("signin.title")}</h1>
        <Answered asked={asked} bones={<Bones lines={4} />}>
          {(methods) => <Ways methods={methods} />}
        </Answered>
      </div>
    </main>
  );
}

function Ways({ methods }: { methods: SignInMethods }) {
  const { t } = useWords();
  const { query } = usePlace();
  const next = nextOf(query);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const send = (way: "token" | "code", secret: string) => {
    setBusy(true);
    setFault(null);
    signIn(way, secret).then(
      () => enter(next),
      (error: unknown) => {
        setBusy(false);
        setFault(error instanceof ApiError ? error : new ApiError(0, "bug", String(error), null, null));
      },
    );
  };
  useEffect(() => {
    const code = takeCode();
    if (code === null) return;
    // A page that is opened again with its code is signed in by its cookie.
    void isSignedIn().then((already) => (already ? enter(next) : send("code", code)));
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the code is taken once
  }, []);
  const params = new URLSearchParams(query);
  const shown = fault ?? ofProvider(methods, params);
  if (methods.ways.length === 0)
    return (
      <p className="dim">
        {t("signin.off")} <a href={next}>{t("signin.go")}</a>
      </p>
    );
  return (
    <>
      {shown && <Fault fault={shown} />}
      {!shown && params.get("why") === "no-user" && <Note>{t("signin.noUser")}</Note>}
      {methods.ways.includes("oidc") && (
        <a className="signin-provider" href={providerAddress(next)} data-testid="signin-oidc">
          {t("signin.oidc")}
        </a>
      )}
      {methods.ways.includes("token") && <Secret way="token" label={t("signin.token")} hint={t("signin.tokenHint")} busy={busy} onSend={send} />}
      {methods.ways.includes("code") && <Secret way="code" label={t("signin.code")} hint={t("signin.codeHint")} busy={busy} onSend={send} />}
    </>
  );
}

const ofProvider = ({ failure }: SignInMethods, params: URLSearchParams): ApiError | null => (failure && params.has("failed") ? new ApiError(0, failure.code, failure.error, failure.hint, null) : null);

function Fault({ fault }: { fault: ApiError }) {
  const { t, code } = useWords();
  const isOwn = fault.code === "signed-out";
  return (
    <div className="banner broken" role="alert" data-testid="signin-fault">
      <span>
        <b>{isOwn ? t("signin.refused", { error: fault.message }) : code("error", fault.code, { status: fault.status, error: fault.message }, fault.message)}</b> {fault.hint && <span className="hint">{fault.hint}</span>}
      </span>
    </div>
  );
}

function Note({ children }: { children: ReactNode }) {
  return (
    <div className="banner" role="status" data-testid="signin-note">
      <span>{children}</span>
    </div>
  );
}

interface SecretProps {
  way: "token" | "code";
  label: string;
  hint: string;
  busy: boolean;
  onSend: (way: "token" | "code", secret: string) => void;
}

/** One field. What was typed stays when it is refused, so that it can be compared. */
function Secret({ way, label, hint, busy, onSend }: SecretProps) {
  const { t } = useWords();
  const [text, setText] = useState("");
  const id = useId();
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onSend(way, text.trim());
  };
  return (
    <form onSubmit={onSubmit} className="signin-form" data-testid={`signin-${way}`}>
      <label htmlFor={id}>{label}</label>
      <p className="dim" id={`${id}-hint`}>
        {hint}
      </p>
      <div className="signin-row">
        <Input.Password id={id} value={text} autoComplete="off" spellCheck={false} aria-describedby={`${id}-hint`} onChange={(event) => setText(event.target.value)} visibilityToggle={false} />
        <Button htmlType="submit" loading={busy}>
          {t("signin.do")}
        </Button>
      </div>
    </form>
  );
}
