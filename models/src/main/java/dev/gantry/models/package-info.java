// SPDX-License-Identifier: Apache-2.0
/// Loads models of known architectures as DJL blocks: a folder of the hub, with `config.json` and
/// safetensors, becomes a model that answers.
///
/// [HubModel][dev.gantry.models.HubModel] reads the folder. Each block is one file that you can read
/// and copy; [HubNames][dev.gantry.models.HubNames] says which tensors of the hub fill its parameters,
/// and those of DJL's own blocks.
@NullMarked
package dev.gantry.models;

import org.jspecify.annotations.NullMarked;
