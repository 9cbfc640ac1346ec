// A bug in one board must not break the frame: it is shown, with a way to continue. A script that failed to load is not a bug.
import { Component, type ReactNode } from "react";
import { Failed } from "../parts/States";
import { currentPlace } from "../router/router";
import { isOfScript } from "./upgrade";
import { ScriptMissing } from "./Upgraded";

interface State {
  readonly error: Error | null;
  readonly path: string;
}

/** `path`: the page inside. An error of one page is not shown on the next. */
export class Fence extends Component<{ path: string; children: ReactNode }, State> {
  override state: State = { error: null, path: "" };

  static getDerivedStateFromError(error: Error): State {
    return { error, path: currentPlace().path };
  }

  static getDerivedStateFromProps(props: { path: string }, state: State): State | null {
    return state.error !== null && state.path !== props.path ? { error: null, path: "" } : null;
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="page">
        {isOfScript(this.state.error) ? <ScriptMissing /> : <Failed error={this.state.error} onRetry={() => this.setState({ error: null, path: "" })} />}
      </div>
    );
  }
}
