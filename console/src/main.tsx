import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/theme.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/editor.css";
import "./styles/results.css";
import "./styles/pages.css";

render(<App />, document.getElementById("app") as HTMLElement);
