// A bug in one board must not take the frame with it: it is said, with a way to go on. A script that did not come is no bug.
import { Component, type ReactNode } from "react";
import { Failed } from "../parts/States";
import { currentPlace } from "../router/router";
import { isOfScript } from "./upgrade";
import { ScriptMissing } from "./Upgraded";

interface State {
  readonly error: Error | null;
  readonly path: string;
}

/** `path`: the page inside. What happened on one page is not told on the next. */
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
