//! Memory of machine code, and calls of the code.
//!
//! Input: a program and its stages. Output: a function for each stage. The memory is freed with [`Code`]. Only [`Code`]
//! knows the addresses of the functions, so no function outlives the memory. A function reads as many values and
//! validity bits of the columns of its stage as its argument of rows states, and writes a bit per row; [`Code::retain`]
//! checks that they exist.

use crate::emit::{ROWS, emit};
use crate::stages::Stage;
use cranelift_codegen::ir::AbiParam;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::isa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tidalite_kernels::Mask;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::program::{Columns, Kind, Program, SPAN};

/// Programs with more columns are not compiled.
pub(crate) const COLUMNS_MAX: usize = 32;

/// Signature of the functions; see [`emit`].
type Loop = unsafe extern "C" fn(*const *const u8, *const *const u8, u64, u64, *mut u8);

/// Validity of columns without NULLs.
static ALL_THERE: [u64; VECTOR / 64] = [u64::MAX; VECTOR / 64];

pub(crate) struct Code {
    loops: Vec<Stretch>,
    /// Taken when `Code` is dropped. The lock is never contended; it makes the type `Sync`.
    memory: Mutex<Option<JITModule>>,
}

struct Stretch {
    run: Loop,
    /// All columns that the function reads.
    columns: Vec<(usize, Kind)>,
}

impl Code {
    /// Compiles a program; `None` if it cannot be compiled on this machine.
    pub fn of(program: &Program, stages: &[Stage]) -> Option<Code> {
        Code::with(cranelift_native::builder().ok()?, program, stages)
    }

    /// Compiles for the instruction set of `machine`, which the current machine must support.
    pub fn with(machine: isa::Builder, program: &Program, stages: &[Stage]) -> Option<Code> {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        flags.set("use_colocated_libcalls", "false").ok()?;
        flags.set("is_pic", "false").ok()?;
        let isa = machine.finish(settings::Flags::new(flags)).ok()?;
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        // From here on, dropping `code` frees the memory.
        let mut code = Code { loops: Vec::new(), memory: Mutex::new(Some(module)) };
        let module = code.memory.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()?;
        let (mut context, mut builder) = (module.make_context(), FunctionBuilderContext::new());
        let mut ids = Vec::with_capacity(stages.len());
        for stage in stages {
            context.func.signature.params.extend([AbiParam::new(I64); 5]);
            let mut body = FunctionBuilder::new(&mut context.func, &mut builder);
            emit(&mut body, program, stage);
            body.finalize(module.isa().frontend_config());
            let id = module.declare_anonymous_function(&context.func.signature).ok()?;
            module.define_function(id, &mut context).ok()?;
            module.clear_context(&mut context);
            ids.push(id);
        }
        module.finalize_definitions().ok()?;
        let loops = stages.iter().zip(ids).map(|(stage, id)| {
            let at = module.get_finalized_function(id);
            // SAFETY: the function was just compiled with these five parameters of 64 bits, in the C calling convention
            // of the module, which is the convention of this machine, and the memory stays allocated as long as `Code`.
            let run = unsafe { std::mem::transmute::<*const u8, Loop>(at) };
            let kinds = program.columns();
            Stretch { run, columns: stage.columns.iter().map(|column| (*column, kinds[*column])).collect() }
        });
        code.loops = loops.collect();
        Some(code)
    }

    /// Clears the rows of `wanted` for which the test of a stage is not true.
    ///
    /// All columns of the stage must be loaded. `rows` is the number of rows of the vector, a multiple of eight.
    ///
    /// # Panics
    /// Panics if columns are shorter than `rows`.
    pub fn retain(&self, stage: usize, columns: &dyn Columns, rows: usize, wanted: &mut Mask) {
        let Stretch { run, columns: read } = &self.loops[stage];
        assert!(rows <= VECTOR && rows.is_multiple_of(ROWS), "{rows} rows");
        let mut values = [std::ptr::null::<u8>(); COLUMNS_MAX];
        let mut valid = [std::ptr::null::<u8>(); COLUMNS_MAX];
        for (column, kind) in read {
            values[*column] = match kind {
                Kind::Int => columns.ints(*column)[..rows].as_ptr().cast(),
                Kind::Float => columns.floats(*column)[..rows].as_ptr().cast(),
            };
            let there = columns.valid(*column).unwrap_or(&ALL_THERE);
            valid[*column] = there[..rows.div_ceil(64)].as_ptr().cast();
        }
        let mut found: Mask = [0; VECTOR / 64];
        let is_wanted = |at: usize| wanted[at / 64..(at + SPAN) / 64].iter().any(|word| *word != 0);
        let mut from = 0;
        while from < rows {
            let start = from;
            while from < rows && is_wanted(from) {
                from += SPAN;
            }
            let to = from.min(rows);
            if start < to {
                // SAFETY: the function reads, from the columns in `read`, the values and validity bits of the rows
                // `start..to`, both multiples of eight. All columns have `rows` rows, checked by the slices above,
                // which are borrowed from `columns` until the call returns. The function writes the bytes `start /
                // 8..to / 8` of a mask of `VECTOR` bits, to which no other reference exists.
                unsafe { run(values.as_ptr(), valid.as_ptr(), start as u64, to as u64, found.as_mut_ptr().cast()) };
            }
            from += SPAN;
        }
        wanted.iter_mut().zip(&found).for_each(|(wanted, found)| *wanted &= found);
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.loops.clear();
        if let Some(module) = self.memory.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // SAFETY: a caller of a function borrows `self`, so no function is running. The addresses of the functions,
            // which no other value holds, are dropped with `self`.
            unsafe { module.free_memory() };
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("loops", &self.loops.len()).finish_non_exhaustive()
    }
}
