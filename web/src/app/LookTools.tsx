// Language and theme, on every page.
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { Icon } from "../parts/Icon";

export function LookTools() {
  const { t, locale, setLocale } = useWords();
  const { shade, setShade } = useLook();
  return (
    <>
      <button type="button" className="tool" onClick={() => setLocale(locale === "en" ? "zh-CN" : "en")} aria-label={t("frame.language")} title={t("frame.language")} data-testid="action-language">
        {locale === "en" ? "中文" : "EN"}
      </button>
      <button type="button" className="tool" onClick={() => setShade(shade === "light" ? "dark" : "light")} aria-label={t(shade === "light" ? "frame.dark" : "frame.light")} title={t(shade === "light" ? "frame.dark" : "frame.light")} data-testid="action-theme">
        <Icon name={shade === "light" ? "moon" : "sun"} />
      </button>
    </>
  );
}
