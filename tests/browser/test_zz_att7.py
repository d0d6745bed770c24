import json, time
from browser.sending import field, send, as_json
from browser.asked import ask, SEED
from browser.conftest import *
def st(b): return b.run("return document.getElementById('stage').dataset.state")
def opened(b,a):
    b.open(a); b.one("#open").click()
def deep(n): return (b'[{"key":"k","type":"text","value":'+b"["*n+b"]"*n+b'},{"key":"b","type":"text","value":"second"}]')
import pytest
@pytest.mark.parametrize("n",[1000,5000,20000,200000])
def test_deep(browser,service,n):
    a=send(service,deep(n),access_counts_left=3); opened(browser,a); time.sleep(3); print(n,st(browser),browser.text()[:200]); print(browser.trouble()[:3]); browser.forgive()
@pytest.mark.parametrize("n",[20000,60000,150000])
def test_many(browser,service,n):
    a=send(service,b"["+b",".join([b"{}"]*n)+b"]",access_counts_left=3); t=time.time(); opened(browser,a)
    browser.driver.set_script_timeout(60)
    for _ in range(100):
        if time.time()-t>40: break
        if st(browser)!="ready" : break
        time.sleep(.5)
    print(n,time.time()-t,st(browser)); print(browser.trouble()[:3]); browser.forgive()
@pytest.mark.parametrize("kind",["text","password","source_code","url","markdown","key"])
def test_big(browser,service,kind):
    v="\u202ex "*3_000_000
    a=send(service,[field(v if kind!="key" else "v",kind,**({"key":v[:1_000_000]} if kind=="key" else {}))]); t=time.time(); opened(browser,a)
    for _ in range(60):
        if st(browser)=="open": break
        time.sleep(.5)
    print(kind,time.time()-t,st(browser)); print(browser.trouble()[:3]); browser.forgive()
def test_bf(browser,service):
    a=send(service,[field("sekrit-1")],access_counts_left=3); opened(browser,a); browser.says("sekrit-1")
    browser.run("window.mark=1")
    browser.driver.get(browser.origin+"/s/none#x"); time.sleep(.5)
    browser.driver.back(); time.sleep(1.5)
    print("after back",browser.run("return window.mark"),st(browser),browser.text()[:100],"sekrit" in browser.driver.page_source, browser.run("return location.href+' '+history.length+JSON.stringify(history.state)"))
    print(browser.run("return JSON.stringify(performance.getEntries().map(e=>e.name))"))
    browser.forgive()
def test_perf_entry(browser,service):
    a=send(service,[field("sekrit-1")]); opened(browser,a); browser.says("sekrit-1")
    k=a.partition("#")[2]; print("perf", k in browser.run("return JSON.stringify(performance.getEntries().map(e=>e.name))"))
    print("nav", [e for e in browser.run("return performance.getEntriesByType('navigation').map(e=>e.name)")])
def test_dbl(browser,service):
    a=send(service,[field("sekrit-1")],access_counts_left=5); browser.open(a); browser.one("#open")
    browser.run("const b=document.getElementById('open'); for(let i=0;i<5;i++) b.click(); b.form.requestSubmit(); b.form.requestSubmit()"); browser.says("sekrit-1"); time.sleep(.5); print(browser.text()[-300:])
    c=a.rpartition("/")[2].partition("#")[0]; print("left",service.service.store.row("SELECT access_counts_left a FROM shares WHERE short_code=:c",{"c":c})["a"])
@pytest.mark.parametrize("n",[3000,50000])
def test_owner_deep(browser,job,n):
    asked=ask(job); asked.answer(); 
    import sealpipe
    pass
    asked.seal(deep(n)); browser.open(asked.access_link); time.sleep(3); print(n,st(browser),browser.text()[:300]); print(browser.trouble()[:3]); browser.forgive()
@pytest.mark.parametrize("n",[150000])
def test_owner_many(browser,job,n):
    asked=ask(job); asked.answer(); asked.seal(b"["+b",".join([b"{}"]*n)+b"]"); browser.open(asked.access_link); time.sleep(3); print(st(browser)); browser.all("button")
    browser.run("[...document.querySelectorAll('button')].find(b=>b.textContent.startsWith('Show 1')).click()"); time.sleep(5); print(browser.run("return document.querySelectorAll('.field').length")); print(browser.trouble()[:3]); browser.forgive()
