// SPDX-License-Identifier: Apache-2.0
/// Libraries written in C that replace libcuda and libcufile, so that code for a GPU runs on
/// machines without one.
///
/// Tests with the tag `gpu` run on a GPU host and on the stubs; tests with the tag `gpu-stub` need
/// behaviour that only the stubs have. Behaviour that only the stubs have shown counts as
/// unproven.
package dev.gantry.testing.stub;
