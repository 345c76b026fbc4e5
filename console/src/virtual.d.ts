declare module "virtual:function-signatures" {
  const signatures: [name: string, signature: string, description: string][];
  export default signatures;
}
