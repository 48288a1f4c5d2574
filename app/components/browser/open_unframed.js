// The address of the page without what Streamlit needs to know of a frame. It changes with every act.

export default function ({ parentElement }) {
  const link = parentElement.querySelector("a");
  const name = () => {
    const address = new URL(location.href);
    for (const key of ["embed", "embed_options"]) address.searchParams.delete(key);
    link.href = address;
  };
  name();
  link.onfocus = link.onpointerenter = link.onclick = name;
}
