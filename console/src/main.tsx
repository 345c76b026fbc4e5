import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/theme.css";
import "./styles/layout.css";
import "./styles/sidebar.css";
import "./styles/controls.css";
import "./styles/dialogs.css";
import "./styles/editor.css";
import "./styles/results.css";
import "./styles/grid.css";
import "./styles/charts.css";
import "./styles/welcome.css";
import "./styles/pages.css";

render(<App />, document.getElementById("app") as HTMLElement);
