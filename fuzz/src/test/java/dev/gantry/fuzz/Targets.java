// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import static dev.gantry.fuzz.SeedFiles.files;
import static dev.gantry.fuzz.SeedFiles.folders;
import static dev.gantry.fuzz.SeedFiles.texts;

import dev.gantry.cli.internal.text.JsonTexts;
import dev.gantry.core.internal.cache.CacheFiles;
import dev.gantry.core.internal.http.HttpAnswers;
import dev.gantry.core.internal.hub.HubAnswers;
import dev.gantry.core.internal.resident.ResidentAnswers;
import dev.gantry.formats.internal.examples.ExampleMessages;
import dev.gantry.s3.internal.S3Answers;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/// All targets of the search, one a line.
final class Targets {
  private static final String CORPUS = "formats/src/test/resources/corpus/";
  private static final String MODELS = "models/src/test/resources/";

  private Targets() {}

  static List<Target> all() {
    return List.of(
        Target.of(
            "safetensors", files(CORPUS + "safetensors", ".*\\.safetensors"), Weights::safetensors),
        Target.of("safetensors-folder", Made::index, Weights::folder),
        Target.of("safetensors-sums", Made::sums, Weights::sums).mended(Mended::sums),
        Target.of("quantised", folders(CORPUS + "quantised", "expected.json"), Weights::quantised),
        Target.of("numpy", files(CORPUS + "numpy", ".*\\.npy"), Weights.file("w.npy")),
        Target.of("npz", files(CORPUS + "numpy", ".*\\.npz"), Weights.file("w.npz")),
        Target.of(
            "gguf",
            files(CORPUS + "gguf", ".*\\.gguf").and(files(CORPUS + "gguf-types", ".*\\.gguf")),
            Weights::gguf),
        Target.of(
            "torch",
            files(CORPUS + "torch", ".*\\.pt")
                .and(files(CORPUS + "torch-kinds", ".*\\.(pth?|pkl|bin)")),
            Weights.file("w.pt")),
        Target.of("dcp", folders(CORPUS + "dcp", ".*\\.(json|py)"), Weights::folder),
        Target.of("tfrecord", files(CORPUS + "tfrecord", ".*\\.tfrecord.*"), Samples::records)
            .mended(Samples::mendedRecords),
        Target.of("tfrecord-index", Made::recordIndex, Samples::recordIndex)
            .mended(Mended::indexes),
        Target.of("examples", Made::examples, ExampleMessages::whole),
        Target.of("shards", Made::shards, Samples::shards),
        Target.of("webdataset", files(CORPUS + "webdataset", ".*\\.tar.*"), Samples::archive)
            .mended(Mended::tar),
        Target.of("webdataset-index", Made::archiveIndex, Samples::archiveIndex)
            .mended(Mended::indexes),
        Target.of("images", files(CORPUS + "images", ".*\\.(jpg|png)"), Samples::image)
            .mayThrow(IOException.class)
            .mended(Mended::png),
        Target.of("manifest", Made::manifest, Checkpoints::manifest).mended(Mended::manifest),
        Target.of("checkpoints", Made::checkpoints, Checkpoints::folder)
            .mended(Mended::checkpoints),
        Target.of(
            "hub-config",
            folders(MODELS + "hub", "expected.json|.*safetensors")
                .and(folders(MODELS + "texts", ".*safetensors|.*\\.py")),
            Models::configuration),
        Target.of("chat", Made::chats, Models::chat),
        Target.of("hub-tree", Made::trees, HubAnswers::tree).mayThrow(IOException.class),
        Target.of(
            "hub-name",
            texts("owner/name@main/a/b.json", "datasets/owner/name/x", "owner/name"),
            HubAnswers::name),
        Target.of(
            "hub",
            Made::hubAnswers,
            input -> HubAnswers.answers(input, Places.folder("hub", Map.of()))),
        Target.of("s3", Made::s3Answers, S3Answers::answers),
        Target.of("http-head", Made::heads, HttpAnswers::head).mayThrow(IOException.class),
        Target.of("http", Made::httpAnswers, HttpAnswers::file),
        Target.of(
                "resident-catalogue",
                () -> List.of(ResidentAnswers.exampleCatalogue()),
                ResidentAnswers::catalogue)
            .mayThrow(IOException.class),
        Target.of(
            "resident", () -> List.of(ResidentAnswers.exampleAnswer()), ResidentAnswers::answer),
        Target.of(
            "cache",
            () -> List.of(Bundle.of(CacheFiles.example(Places.folder("made", Map.of())))),
            input -> CacheFiles.entry(Places.folder("cache", Bundle.files(input)))),
        Target.of(
            "location",
            texts(
                "/a/b",
                "s3://bucket/key",
                "http://host:80/x?y#z",
                "hf://o/n",
                "gantry-resident:///run/x.sock"),
            Texts::location),
        Target.of(
            "cufile",
            texts(
                "execution.max_io_threads 8\nproperties.allow_compat_mode true",
                "fs.nfs.mount_table./mnt/a.b.rdma_dev_addr_list 10.0.0.1,10.0.0.2",
                "properties.posix_pool_slab_size_kb 4,8\nproperties.posix_pool_slab_count 1,2"),
            Texts::cuFile),
        Target.of(
            "parquet", files("cli/src/test/resources/parquet", ".*\\.parquet"), Texts::parquet),
        Target.of(
            "jsonl",
            texts("{\"text\":\"a\"}\n{\"text\":\"b\",\"x\":[1,{}]}\n"),
            input -> JsonTexts.read(Places.file("t.jsonl", input))));
  }
}
