// A real anchor: middle click, copy address and screen readers work; a plain click stays in the page.
import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { shown } from "../format/shown";
import { hrefOf, navigate } from "./router";

type Props = { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href">;

export function Link({ to, onClick, children, ...rest }: Props) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={hrefOf(to)} onClick={follow} {...rest}>
      {typeof children === "string" ? shown(children) : children}
    </a>
  );
}
