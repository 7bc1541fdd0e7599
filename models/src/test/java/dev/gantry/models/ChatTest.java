// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChatTest {
  private static final TextGenerator SHORT =
      TextGenerator.builder().optMaxTokens(12).optTemperature(2).optSeed(5).build();

  @TempDir private Path folder;

  @BeforeEach
  void copyAModelThatHasATemplate() throws IOException {
    try (Stream<Path> files = Files.list(HubModelTest.HUB.resolve("llama"))) {
      for (Path file : files.toList()) {
        Files.copy(file, folder.resolve(file.getFileName()));
      }
    }
    // The tokenizer's words get names for the model's other tokens.
    Path tokenizer = folder.resolve("tokenizer.json");
    String others =
        IntStream.range(23, 261)
            .mapToObj(id -> ", \"w%d\": %d".formatted(id, id))
            .collect(joining());
    Files.writeString(
        tokenizer, Files.readString(tokenizer).replace("\"was\": 22", "\"was\": 22" + others));
  }

  @AfterEach
  void nothingIsLeft() {
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// The answer of the generator to the prompt alone.
  private String answered(String prompt) throws IOException {
    HubModel hub = HubModel.of(folder);
    try (Model model = hub.load();
        HuggingFaceTokenizer tokenizer =
            HuggingFaceTokenizer.newInstance(folder.resolve("tokenizer.json"))) {
      long[] ids = tokenizer.encode(prompt, false, false).getIds();
      return tokenizer.decode(SHORT.generate(model, ids), true);
    }
  }

  @Test
  void eachTurnIsAnsweredAsTheWholeConversationIs() throws IOException {
    List<ChatMessage> conversation = new ArrayList<>(List.of(ChatMessage.user("the cat sat")));
    try (Chat chat = HubModel.of(folder).chat(TextOptions.defaults(), SHORT)) {
      assertThat(chat.prompt(conversation)).isEqualTo("the cat sat the");
      for (int turn = 0; turn < 3; turn++) {
        String prompt = chat.prompt(conversation);
        String answer = chat.answer(conversation);
        assertThat(answer).isNotEmpty().isEqualTo(answered(prompt));
        conversation.add(ChatMessage.assistant(answer));
        conversation.add(ChatMessage.user("the dog"));
      }
    }
  }

  @Test
  void aTemplateSeesTheMembersOfAMessageInTheirOrder() throws IOException {
    Files.writeString(
        folder.resolve("chat_template.jinja"),
        "{% for key, value in messages[0].items() %}{{ key }}={{ value }};{% endfor %}");
    try (Chat chat = HubModel.of(folder).chat(TextOptions.defaults(), SHORT)) {
      assertThat(chat.prompt(List.of(ChatMessage.user("a")))).isEqualTo("role=user;content=a;");
    }
  }

  @Test
  void anAnswerComesInPieces() {
    List<ChatMessage> conversation = List.of(ChatMessage.user("the cat"));
    try (Chat chat = HubModel.of(folder).chat(TextOptions.defaults(), SHORT)) {
      String whole = chat.answer(conversation);
      List<String> pieces = new ArrayList<>();
      Iterator<String> stream = chat.stream(conversation);
      stream.forEachRemaining(pieces::add);
      assertThat(String.join("", pieces)).isEqualTo(whole);
      assertThat(pieces).hasSizeGreaterThan(3);

      Iterator<String> left = chat.stream(conversation);
      assertThat(left.next()).isEqualTo(pieces.getFirst());
      assertThat(chat.answer(conversation)).isEqualTo(whole);
      assertThat(left.hasNext()).isFalse();

      // The answer ends before the text of its second piece.
      String stop = pieces.get(1).strip();
      try (Chat stopping = HubModel.of(folder).chat(TextOptions.defaults(), SHORT, stop)) {
        assertThat(stopping.answer(conversation))
            .isEqualTo(whole.substring(0, whole.indexOf(stop)));
      }
    }
  }

  @Test
  void aSecondThreadAndAClosedChatAreRefused() throws Exception {
    List<ChatMessage> conversation = List.of(ChatMessage.user("the cat"));
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch asked = new CountDownLatch(1);
    TextGenerator waiting =
        TextGenerator.builder()
            .optMaxTokens(3)
            .optCancel(() -> {
              begun.countDown();
              return awaits(asked);
            })
            .build();
    Chat chat = HubModel.of(folder).chat(TextOptions.defaults(), waiting);
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<String> answer = thread.submit(() -> chat.answer(conversation));
      begun.await();
      assertThatThrownBy(() -> chat.answer(conversation))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("one thread at a time");
      asked.countDown();
      assertThat(answer.get()).isNotEmpty();
    }
    Iterator<String> stream = chat.stream(conversation);
    chat.close();
    assertThatThrownBy(stream::hasNext).hasMessage("this chat is closed");
    assertThatThrownBy(() -> chat.answer(conversation)).hasMessage("this chat is closed");
    chat.close();
  }

  /// The generator knows no end of a text.
  @Test
  void theFoldersEndTokenEndsAnAnswer() throws IOException {
    List<ChatMessage> conversation = List.of(ChatMessage.user("the cat"));
    HubModel hub = HubModel.of(folder);
    String expected;
    try (Chat chat = hub.chat(TextOptions.defaults(), SHORT);
        Model model = hub.load();
        HuggingFaceTokenizer tokenizer =
            HuggingFaceTokenizer.newInstance(folder.resolve("tokenizer.json"))) {
      long[] prompt = tokenizer.encode(chat.prompt(conversation), false, false).getIds();
      long[] ids = SHORT.generate(model, prompt);
      assertThat(ids[2]).isNotIn(ids[0], ids[1]);
      expected = tokenizer.decode(Arrays.copyOf(ids, 2), true);
      Files.writeString(
          folder.resolve("generation_config.json"), "{\"eos_token_id\": " + ids[2] + "}");
    }
    try (Chat chat = HubModel.of(folder).chat(TextOptions.defaults(), SHORT)) {
      assertThat(chat.answer(conversation)).isEqualTo(expected);
    }
  }

  @Test
  void aModelThatContinuesNoTextsIsClosedAndRefused() throws IOException {
    for (String file : List.of("config.json", "model.safetensors")) {
      Files.copy(
          HubModelTest.HUB.resolve("bert").resolve(file),
          folder.resolve(file),
          StandardCopyOption.REPLACE_EXISTING);
    }
    HubModel hub = HubModel.of(folder);
    assertThatThrownBy(hub::chat)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("only a decoder with its head continues texts");
  }

  private static boolean awaits(CountDownLatch latch) {
    try {
      latch.await();
      return false;
    } catch (InterruptedException _) {
      return true;
    }
  }

  @Test
  void aFolderWithoutATemplateIsRefused() throws IOException {
    HubModel hub = HubModel.of(folder);
    Files.delete(folder.resolve("tokenizer_config.json"));
    assertThatThrownBy(hub::chat)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("a chat needs chat_template.jinja");
    assertThatThrownBy(() -> hub.chat(TextOptions.defaults(), SHORT, ""))
        .hasMessage("a text that ends an answer must not be empty");
    assertThatThrownBy(() -> hub.chat(TextOptions.defaults(), SHORT, (String) null))
        .hasMessage("a text that ends an answer must be given (was null)");
  }
}
