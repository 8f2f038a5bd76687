use std::fs;

use emq::{Client, ConnectError};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use support::{Raw, Server, child, event, in_role};

use crate::jobs::{Count, Counter, start};

/// Connects with TLS as a process of its own, which trusts the certificate that `SSL_CERT_FILE` names.
#[tokio::test(flavor = "multi_thread")]
async fn tls_main() {
    if !in_role("tls::tls_main") {
        return;
    }
    let client = Client::connect(std::env::var("EMQ_TLS_URL").unwrap()).await;
    match client {
        Ok(client) => {
            let counter = Counter::default();
            let queue = support::queue_name("tls");
            start(&client, &counter, std::slice::from_ref(&queue));
            client.queue(&queue).unwrap().enqueue(Count { n: 1 }).await.unwrap();
            counter.reaches(1).await;
            event("done");
        }
        Err(error @ ConnectError::Unreachable { .. }) => event(&format!("refused {error}")),
        Err(error) => event(&format!("unexpected {error:?}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_over_tls_and_an_unknown_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, cert.pem()).unwrap();
    fs::write(&key, signing_key.serialize_pem()).unwrap();

    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (certificate, key) = (path(&certificate), path(&key));
    let config =
        ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key, "tls-auth-clients", "no", "tls-port"];
    // A port that was free a moment ago, as the server's own was.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut command = config.to_vec();
    command.push(&port);
    // Some builds of the server have no TLS, the one on PyPI for example: they refuse, or even end.
    match raw.try_command(&command).await {
        Ok(reply) if !reply.is_error() => {}
        other => {
            println!("not tested: this server can't do TLS ({other:?})");
            return;
        }
    }

    let url = format!("rediss://localhost:{port}");
    let mut trusting = child("tls::tls_main", &[("EMQ_TLS_URL", &url), ("SSL_CERT_FILE", &certificate)]);
    trusting.wait_line("done").await;
    let mut wary = child("tls::tls_main", &[("EMQ_TLS_URL", &url)]);
    let why = wary.wait_line("refused").await;
    assert!(why.contains("UnknownIssuer"), "{why}");
}
