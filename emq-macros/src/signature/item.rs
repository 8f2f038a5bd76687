use proc_macro2::TokenStream;
use quote::{ToTokens, TokenStreamExt};
use syn::{
    Attribute, Signature, Token, Visibility,
    parse::{Parse, ParseStream},
};

/// A function with its body unparsed: a mistake in the body is then reported by the compiler alone, and completion
/// works while it is being typed.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    body: TokenStream,
}

impl Function {
    /// Whether it has a body; a trait's method may have none.
    pub(super) fn has_body(&self) -> bool {
        syn::parse2::<Token![;]>(self.body.clone()).is_err()
    }

    /// The `#[cfg]`s, which what is generated beside the function has to share.
    pub(crate) fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.attrs.iter().filter(|attr| attr.path().is_ident("cfg"))
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let struct_like = input.peek(Token![struct]) || input.peek(Token![enum]) || input.peek(Token![union]);
        if struct_like {
            return Err(input.error("`#[job]` goes on an async function: on a struct, write `#[derive(Job)]`"));
        }
        let sig = match input.fork().parse::<Signature>() {
            Ok(_) => input.parse()?,
            Err(_) if input.peek(Token![fn]) || input.peek(Token![async]) => input.parse()?,
            Err(_) => return Err(input.error("`#[job]` goes on an async function, and this is none")),
        };
        Ok(Self { attrs, vis, sig, body: input.parse()? })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(&self.attrs);
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        self.body.to_tokens(tokens);
    }
}
