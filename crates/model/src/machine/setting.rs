//! Settings that change a machine: `disks=4`, `bus=pcie3x8`, `disks.rate=20MB/s`.

use keepup_error::Cause;
use keepup_plan::close_names;

use super::Machine;
use super::check::HOSTS;
use crate::catalogue;
use crate::error::ModelError;
use crate::formulas::store::Layout;
use crate::ranged::Ranged;
use crate::unit::Quantity;

impl Machine {
    /// Changes one item: `NAME=4` count of a resource, `NAME=PART` its part, `NAME.count=4`,
    /// `NAME.part=PART`, `NAME.layout=raid5`, `NAME.FIGURE=20MB/s` one of its figures, `hosts=2`;
    /// for background traffic `NAME=on`, `NAME=off` and `NAME.rate=50MB/s`.
    ///
    /// A new part discards the figures set for the previous one. A bus of the same kind keeps the
    /// windows of its masters; another kind does not.
    ///
    /// # Errors
    /// Unknown names, with suggestions, or an invalid value. The machine is then unchanged.
    pub fn with(&mut self, setting: &str) -> Result<(), ModelError> {
        let mut changed = self.clone();
        let refused = |reason: Cause| ModelError::Setting {
            setting: setting.to_owned(),
            machine: self.name.clone(),
            reason,
        };
        changed.apply(setting).map_err(refused)?;
        changed.fault().map_err(|fault| refused(fault.into_cause()))?;
        *self = changed;
        Ok(())
    }

    fn apply(&mut self, setting: &str) -> Result<(), Cause> {
        let Some((key, value)) = setting.split_once('=') else {
            let hint = "use NAME=VALUE, such as disks=4, bus=pcie3x8 or disks.rate=20MB/s";
            return Err(Cause::new("missing '='").with_hint(hint));
        };
        let (key, value) = (key.trim(), value.trim());
        let (name, figure) = match key.split_once('.') {
            Some((name, figure)) => (name, Some(figure)),
            None => (key, None),
        };
        if key == HOSTS {
            self.hosts = count(value)?;
            return Ok(());
        }
        if let Some(beside) = self.beside.get_mut(name) {
            match (figure, value) {
                (None, "on") => beside.on = true,
                (None, "off") => beside.on = false,
                (Some("rate"), _) => {
                    beside.rate = given(value)?;
                    beside.on = true;
                }
                _ => {
                    let why = format!("background traffic accepts {name}=on, {name}=off or {name}.rate=...");
                    return Err(why.into());
                }
            }
            return Ok(());
        }
        if !self.resource.contains_key(name) {
            let known = self.resource.keys().chain(self.beside.keys()).map(String::as_str);
            let known: Vec<&str> = known.chain([HOSTS]).collect();
            let close = close_names(name, known.iter().copied());
            let list = if close.is_empty() { known.join(", ") } else { close.join(", ") };
            let why = format!("no resource or path named {name:?}");
            return Err(Cause::new(why).with_hint(format!("use one of {list}")));
        }
        match figure {
            None if value.chars().all(|c| c.is_ascii_digit()) => self.set_count(name, count(value)?),
            None | Some("part") => return self.set_part(name, value),
            Some("count") => self.set_count(name, count(value)?),
            Some("layout") => {
                let layout = layout(value)?;
                self.resource.entry(name.to_owned()).and_modify(|spec| spec.layout = layout);
            }
            Some(figure) => {
                let value = given(value)?;
                if let Some(spec) = self.resource.get_mut(name) {
                    spec.set.insert(figure.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    fn set_count(&mut self, name: &str, count: u32) {
        self.resource.entry(name.to_owned()).and_modify(|spec| spec.count = count);
    }

    fn set_part(&mut self, name: &str, part: &str) -> Result<(), Cause> {
        let new = catalogue::part(part).map_err(|error| Cause::of(&error))?;
        let Some(spec) = self.resource.get_mut(name) else { return Ok(()) };
        let old = spec.part(name).map_err(|fault| fault.reason)?;
        spec.part = Some(part.to_owned());
        spec.formula = None;
        spec.set.clear();
        if old.formula != new.formula {
            let stages = self.path.values_mut().flat_map(|path| path.stages.iter_mut());
            stages.filter(|stage| stage.on == name).for_each(|stage| stage.window = None);
        }
        Ok(())
    }
}

fn count(value: &str) -> Result<u32, Cause> {
    value.parse().map_err(|_| {
        Cause::new(format!("{value:?} is not a count")).with_hint("set a figure with NAME.FIGURE=VALUE")
    })
}

fn given(value: &str) -> Result<Ranged, Cause> {
    value.parse::<Quantity>().map(Ranged::given)
}

fn layout(value: &str) -> Result<Layout, Cause> {
    let known = [
        ("each", Layout::Each),
        ("raid0", Layout::Raid0),
        ("raid1", Layout::Raid1),
        ("raid10", Layout::Raid10),
        ("raid5", Layout::Raid5),
        ("raid6", Layout::Raid6),
    ];
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, layout)| *layout);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Cause::new(format!("unknown layout {value:?}")).with_hint(format!("use one of {}", names.join(", ")))
    })
}
