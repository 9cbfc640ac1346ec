// Light or dark? The tokens become CSS variables on <html> and the seed of Ant Design's theme.
import { ConfigProvider, theme as antTheme } from "antd";
import enUS from "antd/locale/en_US";
import zhCN from "antd/locale/zh_CN";
import { createContext, type ReactNode, useCallback, useContext, useLayoutEffect, useMemo, useState } from "react";
import { useWords } from "../i18n/locale";
import { cssVariables, type Shade, type Tokens, tokens } from "./tokens";
import { readStored, store } from "../app/stored";

interface Look {
  readonly shade: Shade;
  readonly tokens: Tokens;
  readonly setShade: (shade: Shade) => void;
}

const LookContext = createContext<Look | null>(null);
const STORED = "fairlead.theme";
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

function firstShade(): Shade {
  const stored = readStored(STORED);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function paint(shade: Shade): void {
  const root = document.documentElement;
  root.dataset["theme"] = shade;
  root.style.colorScheme = shade;
  for (const [name, value] of cssVariables(tokens[shade])) root.style.setProperty(name, value);
}

export function LookProvider({ children }: { children: ReactNode }) {
  const [shade, setState] = useState<Shade>(firstShade);
  const { locale } = useWords();
  useLayoutEffect(() => paint(shade), [shade]);
  const setShade = useCallback((next: Shade) => {
    store(STORED, next);
    setState(next);
  }, []);
  const look = useMemo(() => ({ shade, tokens: tokens[shade], setShade }), [shade, setShade]);
  return (
    <LookContext value={look}>
      <ConfigProvider csp={nonce ? { nonce } : {}} locale={locale === "en" ? enUS : zhCN} theme={antOf(shade)} componentSize="small" button={{ autoInsertSpace: false }} wave={{ disabled: true }}>
        {children}
      </ConfigProvider>
    </LookContext>
  );
}

export function useLook(): Look {
  const look = useContext(LookContext);
  if (!look) throw new Error("no LookProvider above");
  return look;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

function antOf(shade: Shade) {
  const t = tokens[shade];
  return {
    algorithm: shade === "dark" ? antTheme.darkAlgorithm : antTheme.defaultAlgorithm,
    token: {
      colorPrimary: t.blue,
      colorInfo: t.blue,
      colorError: t.red,
      colorWarning: t.amber,
      colorLink: t.blue,
      colorText: t.text,
      colorTextSecondary: t.text2,
      colorTextPlaceholder: t.text3,
      colorBorder: t.lineStrong,
      colorBorderSecondary: t.line,
      colorBgContainer: t.surface,
      colorBgElevated: t.raised,
      colorBgLayout: t.page,
      borderRadius: 4,
      fontFamily: FONT,
      fontSize: 13,
      controlHeight: 28,
      controlHeightSM: 28,
      motionDurationFast: "0.12s",
      motionDurationMid: "0.12s",
      motionDurationSlow: "0.12s",
    },
    // On the light blue and red of the dark theme white words cannot be read.
    components: shade === "dark" ? { Button: { primaryColor: t.page, dangerColor: t.page } } : {},
  };
}
