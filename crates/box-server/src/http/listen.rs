//! Where the page listens: on loopback, both families, at the usual port or the next free one.
//!
//! A port that is taken is no reason not to run boxes: only an address a person named on the
//! command line must be had.

use crate::problem;
use box_api::Problem;
use box_core::settings::page::{Listen, PORT};
use box_core::sign_ins::Place;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// Ports tried after the usual one.
const PORTS_TRIED: u16 = 10;

/// What the page is served from.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(super) listeners: Vec<TcpListener>,
    /// The port a browser sees.
    pub(super) port: u16,
    pub(crate) place: Place,
}

impl Listening {
    fn off(why: String) -> Self {
        Self {
            listeners: Vec::new(),
            port: 0,
            place: Place::Off(why),
        }
    }
}

/// Listens where the command line says, else where the settings say.
///
/// # Errors
/// An address of the command line that cannot be had.
pub(crate) async fn listen(asked: Option<Listen>, settings: Listen) -> Result<Listening, Problem> {
    match (asked, settings) {
        (Some(Listen::Off), _) => Ok(Listening::off("it was started without".to_owned())),
        (None, Listen::Off) => Ok(Listening::off("the settings turn it off".to_owned())),
        (Some(Listen::At(address)), _) => at(address)
            .await
            .map_err(|error| problem::page_address(address, &error)),
        (None, Listen::At(address)) => Ok(of_settings(address).await.unwrap_or_else(|error| {
            tracing::error!(%address, %error, "the page has no address");
            Listening::off(format!("could not listen at `{address}`: {error}"))
        })),
        (Some(Listen::Usual), _) | (None, Listen::Usual) => Ok(usual().await),
    }
}

async fn at(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let shown = if bound.ip().is_unspecified() {
        SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()))
    } else {
        bound
    };
    Ok(Listening {
        listeners: vec![listener],
        port: bound.port(),
        place: Place::At(format!("http://{shown}")),
    })
}

/// A fixed port of 127.0.0.1 is listened at on both families, as the usual one is: the link then
/// says `localhost`, as every other link to this host. Where somebody else has the port of `::1`,
/// the address stands in the link, so that it leads to nobody else.
async fn of_settings(address: SocketAddr) -> io::Result<Listening> {
    let port = address.port();
    if address.ip() == IpAddr::from(Ipv4Addr::LOCALHOST)
        && port != 0
        && let Ok(listeners) = both(port).await
    {
        return Ok(Listening {
            listeners,
            port,
            place: Place::At(format!("http://localhost:{port}")),
        });
    }
    at(address).await
}

async fn usual() -> Listening {
    let mut why = String::new();
    for port in PORT..=PORT + PORTS_TRIED {
        match both(port).await {
            Ok(listeners) => {
                return Listening {
                    listeners,
                    port,
                    place: Place::At(format!("http://localhost:{port}")),
                };
            }
            Err(error) => why = format!("port {port}: {error}"),
        }
    }
    tracing::error!(why, "the page has no port");
    Listening::off(format!(
        "none of the ports {PORT} to {} is free ({why})",
        PORT + PORTS_TRIED
    ))
}

/// Both, so that nobody else can be `localhost` at that port.
async fn both(port: u16) -> io::Result<Vec<TcpListener>> {
    let four = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(six) => Ok(vec![four, six]),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        // A machine without IPv6.
        Err(_) => Ok(vec![four]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_usual_place_is_this_machine_only() {
        let listening = listen(None, Listen::Usual).await.unwrap();
        assert!(!listening.listeners.is_empty(), "{listening:?}");
        for listener in &listening.listeners {
            let address = listener.local_addr().unwrap();
            assert!(address.ip().is_loopback(), "{address}");
            assert_eq!(address.port(), listening.port);
        }
    }

    /// A port that was free a moment ago.
    async fn free() -> u16 {
        let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        found.local_addr().unwrap().port()
    }

    /// The link to a page at this port; nothing when somebody else took it meanwhile.
    async fn link_to(port: u16) -> Option<String> {
        let address = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        match listen(None, address).await.unwrap().place {
            Place::At(url) => Some(url),
            Place::Opening | Place::Off(_) => None,
        }
    }

    #[tokio::test]
    async fn an_address_of_the_settings_gives_the_same_link_as_no_setting() {
        let (mut port, mut url) = (0, None);
        // Somebody else may take a port between its being found and used.
        while url.is_none() {
            port = free().await;
            url = link_to(port).await;
        }
        assert_eq!(url, Some(format!("http://localhost:{port}")));
    }

    #[tokio::test]
    async fn a_link_never_leads_to_whoever_has_the_other_family() {
        let (mut port, mut url) = (0, None);
        // Somebody else may take a port between its being found and used.
        while url.is_none() {
            port = free().await;
            let other = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await;
            url = link_to(port).await.filter(|_| other.is_ok());
        }
        assert_eq!(url, Some(format!("http://127.0.0.1:{port}")));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_costs_the_page_unless_a_person_named_it() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = Listen::At(taken.local_addr().unwrap());
        let problem = listen(Some(address), Listen::Usual).await.unwrap_err();
        assert_eq!(problem.slug, "page-address");
        let listening = listen(None, address).await.unwrap();
        assert!(matches!(listening.place, Place::Off(_)), "{listening:?}");
    }
}
