"""transformers' models by folder: their inputs, axes and longest texts follow from the configuration."""

import pytest
import torch

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.zoo import find, load

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
BERT = {"vocab_size": 50, "max_position_embeddings": 40, **SMALL}
TOKENS = {0: "batch", 1: ("tokens", 1, 40)}


def bert():
    return transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))


def roberta():
    return transformers.RobertaModel(transformers.RobertaConfig(**{**BERT, "type_vocab_size": 1}))


def vit():
    return transformers.ViTForImageClassification(transformers.ViTConfig(image_size=16, patch_size=8, **SMALL))


def gpt2():
    config = transformers.GPT2Config(vocab_size=50, n_positions=40, n_embd=16, n_layer=1, n_head=2)
    return transformers.GPT2LMHeadModel(config)


def t5():
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=20, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config)


def wav2vec2():
    config = transformers.Wav2Vec2Config(
        conv_dim=(4, 4),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        **SMALL,
    )
    return transformers.Wav2Vec2Model(config)


def unbounded(axis):
    return {0: "batch", 1: axis}


@pytest.fixture
def folder(tmp_path):
    def save(make):
        torch.manual_seed(0)
        model = make().eval()
        model.save_pretrained(tmp_path / "model")
        return model, f"hf:{tmp_path / 'model'}"

    return save


@pytest.mark.parametrize(
    ("make", "dynamic"),
    [
        (bert, {"input_ids": TOKENS, "attention_mask": TOKENS, "token_type_ids": TOKENS}),
        (roberta, {key: {0: "batch", 1: ("tokens", 1, 38)} for key in ("input_ids", "attention_mask")}),
        (vit, {"pixel_values": {0: "batch"}}),
        (gpt2, {"input_ids": TOKENS, "attention_mask": TOKENS}),
        (
            t5,
            {
                "input_ids": unbounded("tokens"),
                "attention_mask": unbounded("tokens"),
                "decoder_input_ids": unbounded("decoder_tokens"),
            },
        ),
        (wav2vec2, {"input_values": unbounded("samples")}),
    ],
)
def test_inputs_follow_from_the_configuration(folder, make, dynamic):
    model, spec = folder(make)
    sample = load(spec).validate(spec)
    assert sample.random == ""
    assert sample.dynamic == dynamic
    assert not sample.model.training
    with torch.no_grad():
        wanted, found = model(**sample.inputs, return_dict=True), sample.model(**sample.inputs, return_dict=True)
    torch.testing.assert_close(found[0], wanted[0])
    if "attention_mask" in sample.inputs:
        assert sample.inputs["attention_mask"].unique().tolist() == [0, 1]


def test_the_longest_text_is_the_models_own(folder):
    _, spec = folder(roberta)
    sample = load(spec)
    with torch.no_grad():
        assert sample.model(torch.full((1, 38), 7)).last_hidden_state.shape[1] == 38
        with pytest.raises((IndexError, RuntimeError)):
            sample.model(torch.full((1, 39), 7))


def test_a_text_model_is_exported_at_every_length(folder):
    _, spec = folder(bert)
    sample = load(spec)
    result = export_compat(sample.model, sample.args, kwargs=sample.kwargs, dynamic=sample.dynamic)
    (logits,) = result(torch.full((1, 40), 7), torch.ones(1, 40).long(), torch.zeros(1, 40).long())
    with torch.no_grad():
        torch.testing.assert_close(logits, sample.model(torch.full((1, 40), 7)).logits)


def test_the_task_chooses_the_head(folder):
    _, spec = folder(bert)
    assert type(load(f"{spec}#fill-mask").model).__name__ == "BertForMaskedLM"
    with pytest.raises(CompatError, match="unknown task 'fil-mask'; did you mean 'fill-mask'"):
        load(f"{spec}#fil-mask")


def test_a_configuration_alone_gives_random_weights(tmp_path):
    transformers.BertConfig(architectures=["BertModel"], **BERT).save_pretrained(tmp_path)
    assert load(f"hf:{tmp_path}").random == "all"
    with pytest.raises(CompatError, match=r"the folder holds a configuration, and no weights"):
        load(f"hf:{tmp_path}", None, "DEFAULT")


def test_what_cannot_be_had_is_one_line(monkeypatch):
    def offline(*_, **__):
        raise OSError("We couldn't connect to 'https://huggingface.co'.\nCheckout your internet connection.")

    monkeypatch.setattr("torch_onnx_compat.zoo.hf.AutoConfig.from_pretrained", offline)
    message = r"^hf:acme/model: cannot be had: We couldn't connect.*save_pretrained wrote\.$"
    with pytest.raises(CompatError, match=message) as error:
        load("hf:acme/model")
    assert "\n" not in str(error.value)


def test_names_are_those_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    assert isinstance(find("hf").names(), list)
