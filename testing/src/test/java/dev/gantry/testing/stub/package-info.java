// SPDX-License-Identifier: Apache-2.0
/// Libraries written in C that stand in for libcuda and libcufile, so that code for a GPU runs where
/// there is none.
///
/// Tests with the tag `gpu` run on a GPU host and on these; tests with the tag `gpu-stub` need
/// behaviour that only these have. Behaviour that only they have shown counts as unproven.
package dev.gantry.testing.stub;
