//! The traces of the bus article: what is replayed, and how its names are read.
use std::path::Path;

use keepup_campaign::{PaperSettings, parse};
use keepup_results::{CampaignSummary, TestSummary as _};

use super::*;
use crate::testing::{begun, full_request};
use crate::{campaign_text, names};

#[test]
fn each_volume_has_the_load_on_the_other() {
    let request = PaperRequest { scale: 0.1, ..full_request() };
    let text = campaign_text(&Tweakers, &request).unwrap();
    let campaign = parse(&text, "tweakers-pci", &names()).unwrap();
    assert_eq!(campaign.axes[0].values.len(), 10);
    for value in campaign.axes[0].values.iter().filter(|value| value.settings.contains_key("load")) {
        let (volume, load) = (&value.settings["volume"][0], &value.settings["load"][0]);
        assert!(!load.contains(&format!("@{volume},")), "{value:?}");
    }
    assert!(Tweakers.campaign(&PaperRequest { volumes: Vec::new(), ..request }).is_err());
}

#[test]
fn all_traces_are_wanted_and_none_is_too_short() {
    let wanted = Tweakers.traces(0.01);
    let mut names: Vec<&str> = wanted.iter().map(|wanted| wanted.personality).collect();
    names.sort_unstable();
    names.dedup();
    // Two are in two sets.
    assert_eq!((names.len(), wanted.len()), (5, 7));
    assert!(wanted.iter().all(|wanted| wanted.time == "1 s"));
    assert!(Tweakers.traces(1.0).iter().all(|wanted| wanted.time == "15 s"));
}

#[test]
fn transfers_are_read_from_the_names_of_phases() {
    assert_eq!(transfer("write 65536 B depth 4"), Some(("write", 65_536.0)));
    assert_eq!(transfer("write"), None);
}

#[test]
fn the_ceilings_are_those_that_the_article_tells() {
    let mut rates: Vec<f64> =
        ceilings(&PublishedPaper::of("tweakers-pci")).into_iter().map(|(_, r)| r).collect();
    rates.sort_by(f64::total_cmp);
    assert_eq!(rates, [75.0, 133.0, 136.0]);
}

#[test]
fn the_load_and_the_losses_are_those_that_were_published() {
    let edition = PublishedPaper::of(NAME);
    assert_eq!(load(&edition), "25");
    let table = PaperSettings { name: NAME.into(), scale: 1.0, with: Vec::new() };
    let campaign = CampaignSummary::begun(&begun());
    let answers = answers(&Reproduced::read(&table, &campaign, Path::new("/nowhere")), &edition);
    assert_eq!(answers[0].published, "32 % on a bus of 133 MB/s; up to 45 % with other devices on it.");
}
