//! Numbers of places, in the order in which they are met.

/// So many are told apart at a time: what is kept of them should stay near the processor.
pub(super) const NUMBERS_MAX: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct PlaceNumbers {
    /// By place: its number from 1; 0 of those that were not met.
    of_places: Vec<u32>,
    /// By number from 0.
    places: Vec<u32>,
}

impl PlaceNumbers {
    /// For so many places.
    pub fn new(places: usize) -> PlaceNumbers {
        PlaceNumbers { of_places: vec![0; places], places: Vec::new() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether so many more rows may be numbered.
    pub fn has_room(&self, rows: usize) -> bool {
        self.places.len() + rows <= NUMBERS_MAX
    }

    /// Numbers from 0 again.
    pub fn clear(&mut self) {
        self.places.drain(..).for_each(|place| self.of_places[place as usize] = 0);
    }

    /// Puts numbers in the places of places.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn number(&mut self, places: &mut [u32]) {
        for place in places {
            let number = &mut self.of_places[*place as usize];
            if *number == 0 {
                self.places.push(*place);
                *number = self.places.len() as u32;
            }
            *place = *number - 1;
        }
    }

    /// Puts places in the places of numbers.
    ///
    /// # Panics
    /// When there is no such number.
    pub fn name(&self, numbers: &mut [u32]) {
        numbers.iter_mut().for_each(|number| *number = self.places[*number as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_from_their_numbers() {
        let mut numbers = PlaceNumbers::new(100);
        for own in [[7, 99, 7, 0], [0, 0, 3, 99]] {
            let mut places = own;
            numbers.number(&mut places);
            assert!(places.iter().all(|number| (*number as usize) < numbers.count()));
            numbers.name(&mut places);
            assert_eq!(places, own);
        }
        assert_eq!(numbers.count(), 4);
        numbers.clear();
        let mut places = [99];
        numbers.number(&mut places);
        assert_eq!((places, numbers.count()), ([0], 1));
        assert!(!numbers.has_room(NUMBERS_MAX) && numbers.has_room(NUMBERS_MAX - 1));
    }
}
