// The way to the page Submit, for those who are signed in.
import { useMe } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { Link } from "../../router/Link";

export function SubmitLink() {
  const { t } = useWords();
  const me = useMe().data;
  if (!me || me.way === "none") return null;
  return (
    <Link to="/submit" className="toggle as-link" data-testid="action-submit">
      {t("submit.new")}
    </Link>
  );
}
