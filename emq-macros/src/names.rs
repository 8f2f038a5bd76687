use proc_macro2::{Ident, Span, TokenStream, TokenTree};

/// The most bytes of a name on the wire.
const MAX_LEN: usize = 128;

/// Checks the name of a job or a queue, `what` it is said to be in the error.
pub(crate) fn check(what: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("{what}'s name can't be empty: write 1 to {MAX_LEN} of A-Z a-z 0-9 . _ -"));
    }
    if let Some(found) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        return Err(format!("{what}'s name is made of A-Z a-z 0-9 . _ - and can't contain {found:?}"));
    }
    if name.len() > MAX_LEN {
        return Err(format!("{what}'s name has at most {MAX_LEN} characters, and this one has {}", name.len()));
    }
    Ok(())
}

/// Checks the name of a queue by the rule of `emq::QueueName::new`.
pub(crate) fn check_queue(name: &str) -> Result<(), String> {
    if name == "emq" {
        return Err("a queue can't be called \"emq\", which holds what all queues share: choose another name".into());
    }
    check("a queue", name)
}

/// An identifier as text, without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// The payload's name: `send_email` makes `SendEmailJob`.
pub(crate) fn payload(function: &Ident) -> Ident {
    let mut name = String::new();
    for word in unraw(function).split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(letters.as_str());
    }
    name.push_str("Job");
    // `_1` is the name of a function, and `1Job` would be none of a struct.
    if syn::parse_str::<Ident>(&name).is_err() {
        name.insert(0, '_');
    }
    Ident::new(&name, function.span())
}

/// The job name of a struct: `SendEmail` makes `send_email`, and `HTTPCall2` makes `http_call2`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before != '_' && (!before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `base`, or `base` with a number, such that it means nothing else in `tokens`: generic parameters aren't hygienic.
pub(crate) fn fresh(base: &str, tokens: &TokenStream) -> Ident {
    let mut name = base.to_owned();
    let mut number = 1;
    while mentions(tokens, &name) {
        number += 1;
        name = format!("{base}{number}");
    }
    Ident::new(&name, Span::mixed_site())
}

/// Whether an identifier occurs anywhere in the tokens.
pub(crate) fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// How many letters have to change to make one word the other.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_names_its_payload() {
        for (function, name) in [
            ("send_email", "SendEmailJob"),
            ("r#type", "TypeJob"),
            ("_private", "PrivateJob"),
            ("_1", "_1Job"),
            ("sendEmail", "SendEmailJob"),
            ("s3_put", "S3PutJob"),
        ] {
            let function = syn::parse_str::<Ident>(function).unwrap();
            assert_eq!(payload(&function), name);
        }
    }

    #[test]
    fn a_struct_names_its_job() {
        for (name, job) in [
            ("SendEmail", "send_email"),
            ("HTTPCall2", "http_call2"),
            ("Ping", "ping"),
            ("A", "a"),
            ("Send_Email", "send_email"),
        ] {
            assert_eq!(snake(name), job);
        }
    }

    #[test]
    fn names_on_the_wire_have_one_rule() {
        for good in ["a", "email.send", "A-b_c.9", &"x".repeat(128)] {
            assert_eq!(check("a job", good), Ok(()), "{good}");
        }
        for bad in ["", "has space", "a:b", "grüße", "{a}", &"x".repeat(129)] {
            assert!(check("a job", bad).is_err(), "{bad}");
        }
        assert!(check_queue("emq").is_err() && check("a job", "emq").is_ok());
    }

    #[test]
    fn a_fresh_name_differs_from_all_in_use() {
        let tokens = "State<(S, S2)>".parse().unwrap();
        assert_eq!(fresh("S", &tokens), "S3");
        assert_eq!(fresh("T", &tokens), "T");
    }

    #[test]
    fn distances_count_changed_letters() {
        assert_eq!(distance("timout", "timeout"), 1);
        assert_eq!(distance("queue", "queue"), 0);
        assert_eq!(distance("qeueu", "queue"), 2);
    }
}
